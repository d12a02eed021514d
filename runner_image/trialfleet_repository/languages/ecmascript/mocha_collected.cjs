// For Mocha 8 and newer: adds the tests that it has loaded to the record of `node_settings.cjs`, before the first runs.
'use strict';

const fs = require('fs');
const os = require('os');
const path = require('path');

const RECORD = path.join(os.homedir(), 'test-settings.json');

function nameOf(test) {
  const suites = test.parent.fullTitle();
  return suites ? `${suites} > ${test.title}` : test.title;
}

exports.mochaHooks = {
  beforeAll() {
    const collected = [];
    this.test.parent.eachTest((test) => collected.push(`${test.file}::${nameOf(test)}`));
    try {
      const record = JSON.parse(fs.readFileSync(RECORD, 'utf8'));
      fs.writeFileSync(RECORD, JSON.stringify({ ...record, collected }));
    } catch {
      // tests may have no HOME that they can write
    }
  },
};
