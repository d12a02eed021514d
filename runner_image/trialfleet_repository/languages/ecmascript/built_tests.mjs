// Builds a package as its `test` script does, and then calls its test runner:
//
//   node built_tests.mjs --report=FILE [--makes=PATH]... [--reads=FOLDER]... [--build=COMMAND]... -- RUNNER... +tests FILE...
//
// Where the runner reads test files from a folder of the build (--reads), it gets what the given ones were compiled
// to, and the report names the files that people wrote. --makes is for those who look at the workspace afterwards.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';

const PACKAGED = 'node_modules/';
const SUFFIX = /\.([cm]?)[jt]sx?$/;

const words = process.argv.slice(2);
const end = words.indexOf('--');
const options = words.slice(0, end);
const optionsNamed = (name) => options.filter((word) => word.startsWith(`--${name}=`)).map((word) => word.slice(name.length + 3));
const here = process.cwd();

const folders = [here];
while (dirname(folders.at(-1)) !== folders.at(-1)) folders.push(dirname(folders.at(-1)));
const programs = folders.map((folder) => join(folder, 'node_modules/.bin'));
const environment = { ...process.env, PATH: [...programs, process.env.PATH].join(delimiter) };

function codeOf(ended) {
  if (ended.error) throw ended.error;
  return ended.signal ? 128 + constants.signals[ended.signal] : ended.status;
}

for (const command of optionsNamed('build')) {
  const code = codeOf(spawnSync('sh', ['-c', command], { env: environment, stdio: ['ignore', 2, 2] }));
  if (code !== 0) {
    console.error(`the build before the tests failed: exit ${code} of ${command}`);
    process.exit(1); // 126 and 127 would say that the runner is not there
  }
}

const parents = (path) => path.split('/').map((_, count, parts) => parts.slice(0, parts.length - count).join('/'));
const places = optionsNamed('reads').flatMap((base) => parents(base).map((folder) => ({ base, folder })));

// The file that a test file was compiled to: of several, the one whose path ends most like it.
function compiledTo(test) {
  const path = test.replace(/^\.\//, '');
  const suffix = SUFFIX.exec(path);
  if (!suffix || places.some(({ base }) => path.startsWith(`${base}/`))) return null;
  const names = [...new Set([`.${suffix[1]}js`, '.js', '.mjs', '.cjs'])];
  const rests = path.slice(0, suffix.index).split('/').map((_, from, parts) => parts.slice(from).join('/'));
  const candidates = rests.flatMap((rest) =>
    places.flatMap(({ base, folder }) =>
      names.map((name) => `${folder}/${rest}${name}`).filter((place) => place.startsWith(`${base}/`)),
    ),
  );
  return candidates.find((place) => existsSync(place) && statSync(place).isFile()) ?? null;
}

const runner = words.slice(end + 1);
const at = runner.indexOf('+tests');
const compiled = new Map(runner.slice(at + 1).map((test) => [test, compiledTo(test)]));
const call = runner
  .slice(0, at)
  .map((word) => (word.startsWith(PACKAGED) ? (folders.map((folder) => join(folder, word)).find(existsSync) ?? word) : word));
const files = [...compiled].map(([test, made]) => made ?? test);
const code = codeOf(spawnSync(call[0], [...call.slice(1), ...files], { stdio: 'inherit' }));

const [report] = optionsNamed('report');
const mapped = [...compiled].filter(([, made]) => made !== null);
if (mapped.length && existsSync(report)) {
  let text = readFileSync(report, 'utf8');
  for (const [test, made] of mapped) {
    const source = resolve(here, test);
    for (const name of new Set([resolve(here, made), realpathSync(made)])) {
      text = text.replaceAll(JSON.stringify(name), JSON.stringify(source));
    }
    text = text.replaceAll(`"${made}"`, `"${test.replace(/^\.\//, '')}"`);
  }
  writeFileSync(report, text);
}
process.exit(code);
