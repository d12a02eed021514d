// A reporter for `node --test` (Node 18.15 and later): one JSON line per finished test. `name` holds the titles from
// the outermost suite on, joined by " > "; `whole` says that the line is about a file, not about a test of it.

import { resolve } from 'node:path';

const MOST = 65536; // characters of a text

function outcomeOf(type, data) {
  const set = (value) => value !== undefined && value !== false;
  if (set(data.skip) || set(data.todo)) return 'skipped';
  return type === 'test:pass' ? 'passed' : 'failed';
}

function textOf(error) {
  const cause = error?.cause ?? error;
  return [error?.message, cause?.stack].filter(Boolean).join('\n').slice(0, MOST);
}

function isFile(data) {
  return data.nesting === 0 && (data.file === undefined || resolve(data.name) === data.file);
}

export default async function* resultLines(source) {
  const titles = [];
  const printed = new Map(); // file -> the end of its standard error
  for await (const { type, data } of source) {
    if (type === 'test:stderr') {
      const file = resolve(data.file);
      printed.set(file, ((printed.get(file) ?? '') + data.message).slice(-MOST));
    } else if (type === 'test:start') {
      titles.length = data.nesting;
      titles[data.nesting] = data.name;
    } else if (type === 'test:pass' || type === 'test:fail') {
      const whole = isFile(data);
      const file = data.file ?? (whole ? resolve(data.name) : null);
      const line = {
        file,
        name: [...titles.slice(0, data.nesting), data.name].join(' > '),
        outcome: outcomeOf(type, data),
        suite: data.details?.type === 'suite',
        hook: data.details?.error?.failureType === 'hookFailed',
        whole,
        text: (whole && printed.get(file)) || textOf(data.details?.error),
      };
      yield `${JSON.stringify(line)}\n`;
    }
  }
}
