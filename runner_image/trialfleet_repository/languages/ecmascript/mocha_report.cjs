// The report of Mocha's reporter `json` as of 7.2 and newer, with the file of each test, for older versions.
'use strict';

function clean(test) {
  const err = {};
  for (const key of Object.getOwnPropertyNames(test.err ?? {})) err[key] = test.err[key];
  const shown = { title: test.title, fullTitle: test.fullTitle(), file: test.file, duration: test.duration, err };
  try {
    JSON.stringify(err);
  } catch {
    shown.err = { message: String(test.err), stack: String(test.err.stack) }; // it holds itself
  }
  return shown;
}

module.exports = function MochaReport(runner) {
  const found = { tests: [], pending: [], failures: [], passes: [] };
  runner.on('test end', (test) => found.tests.push(test));
  runner.on('pending', (test) => found.pending.push(test));
  runner.on('pass', (test) => found.passes.push(test));
  runner.on('fail', (test, error) => {
    test.err = error;
    found.failures.push(test);
  });
  runner.on('end', () => {
    const lists = Object.entries(found).map(([name, tests]) => [name, tests.map(clean)]);
    const report = { stats: { tests: found.tests.length }, ...Object.fromEntries(lists) };
    process.stdout.write(JSON.stringify(report, null, 2));
  });
};
