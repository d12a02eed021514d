// Loaded by every Node program of a run of tests, before it. In the main program of Jest, Mocha or Vitest it takes
// back the project's settings that select tests, stop after a failure, repeat, reorder, demand a coverage or change
// the exit code, unless the command line has them; what it took back, and which tests the runner has, goes to a file
// in HOME. In all other programs it does nothing.
'use strict';

const fs = require('fs');
const Module = require('module');
const os = require('os');
const path = require('path');

const RECORD = path.join(os.homedir(), 'test-settings.json');
const takenBack = [];

const isSet = (value) =>
  value !== undefined && value !== null && value !== false && value !== '' && value !== 0 &&
  !(Array.isArray(value) && value.length === 0);

function isSpelled(name, short) {
  const kebab = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const words = [`--${name}`, `--${kebab}`, ...(short ? [short] : [])];
  return process.argv.slice(2).some((word) => words.includes(word.split('=')[0]));
}

function write(collected) {
  try {
    fs.writeFileSync(RECORD, JSON.stringify({ taken_back: [...new Set(takenBack)].sort(), collected }));
  } catch {
    // tests may have no HOME that they can write
  }
}

// `neutral`: name -> the value without effect. What is already so stays, and so does what the command line says.
function takeBack(settings, neutral, prefix = '') {
  const changed = {};
  for (const [name, value] of Object.entries(neutral)) {
    const now = settings[name];
    if (isSet(now) && now !== value && !isSpelled(name)) {
      changed[name] = value;
      takenBack.push(`${prefix}${name}`);
    }
  }
  return changed;
}

const JEST = {
  bail: 0,
  changedSince: undefined,
  coverageThreshold: undefined,
  failedTestsOnly: false,
  filter: undefined,
  lastCommit: false,
  onlyChanged: false,
  onlyFailures: false,
  passWithNoTests: false,
  randomize: false,
  shard: undefined,
  testNamePattern: '',
  testResultsProcessor: undefined,
};

// Jest reads its configuration with one function, whatever the version.
function settingsOfJest() {
  const load = Module._load;
  Module._load = function (request, ...more) {
    const loaded = load.call(this, request, ...more);
    if (request !== 'jest-config' || typeof loaded?.readConfigs !== 'function') return loaded;
    return { ...loaded, readConfigs: async (...given) => readJest(await loaded.readConfigs(...given), load) };
  };
}

function readJest(read, load) {
  const whole = read.globalConfig;
  const changed = takeBack(whole, JEST);
  if ('testFailureExitCode' in whole && whole.testFailureExitCode !== 1) {
    changed.testFailureExitCode = 1;
    takenBack.push('testFailureExitCode');
  }
  const sequencer = whole.testSequencer;
  if (sequencer && !/node_modules.@jest.test-sequencer/.test(sequencer) && !isSpelled('testSequencer')) {
    const from = Module.createRequire(process.argv[1]);
    for (const start of ['jest-config', '@jest/core', 'jest-cli']) {
      try {
        changed.testSequencer = Module.createRequire(from.resolve(start)).resolve('@jest/test-sequencer');
        takenBack.push('testSequencer');
        break;
      } catch {
        continue;
      }
    }
  }
  const own = (whole.reporters ?? []).some(([name]) => name !== 'default' && !/node_modules.@jest.reporters/.test(name));
  if (own && !isSpelled('reporters')) {
    changed.reporters = [['default', {}]];
    takenBack.push('reporters');
  }
  write(null);
  return { ...read, globalConfig: Object.freeze({ ...whole, ...changed }) };
}

const MOCHA = [
  'bail', 'dry-run', 'fail-zero', 'fgrep', 'forbid-only', 'forbid-pending', 'grep', 'ignore', 'invert', 'parallel',
  'pass-on-failing-test-suite', 'retries', 'sort',
];
const MOCHA_SHORT = { bail: 'b', fgrep: 'f', grep: 'g', ignore: 'exclude', invert: 'i', parallel: 'p', sort: 'S' };

// Mocha reads its options with one function, from its configuration files, package.json and a variable.
function settingsOfMocha(folder) {
  let options;
  try {
    options = require(path.join(folder, 'lib', 'cli', 'options'));
  } catch {
    optionsOfOldMocha();
    return;
  }
  const load = options.loadOptions;
  options.loadOptions = (argv) => {
    const read = load(argv);
    const { MOCHA_OPTIONS } = process.env;
    delete process.env.MOCHA_OPTIONS;
    const own = load(['--no-config', '--no-package', '--no-opts', ...argv]);
    if (MOCHA_OPTIONS !== undefined) process.env.MOCHA_OPTIONS = MOCHA_OPTIONS;
    for (const name of MOCHA) {
      const camel = name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
      if (isSet(read[name]) && JSON.stringify(read[name]) !== JSON.stringify(own[name])) takenBack.push(`--${name}`);
      for (const spelled of [name, camel, MOCHA_SHORT[name]].filter((each) => each in read)) {
        if (spelled in own) read[spelled] = own[spelled];
        else delete read[spelled];
      }
    }
    if (own._.length && own._.length < read._.length) {
      read._ = own._; // else all files of the configuration run as well
      takenBack.push('spec');
    }
    write(null);
    read.require = [...[read.require ?? []].flat(), path.join(__dirname, 'mocha_collected.cjs')];
    return read;
  };
}

const OLD_MOCHA = {
  '--bail': 1, '-b': 1, '--grep': 2, '-g': 2, '--fgrep': 2, '-f': 2, '--invert': 1, '-i': 1, '--retries': 2,
  '--sort': 1, '-S': 1, '--forbid-only': 1, '--forbid-pending': 1,
}; // option -> how many words it has
const GIVEN = 'TRIALFLEET_MOCHA_WORDS'; // of the command line, for the second program

// Before Mocha 6 its first program puts the words of test/mocha.opts before those of the command line.
function optionsOfOldMocha() {
  let end = process.argv.length - Number(process.env[GIVEN] ?? 0);
  delete process.env[GIVEN];
  for (let at = 2; at < end; ) {
    const [name, value] = process.argv[at].split(/=(.*)/s);
    const words = value === undefined ? OLD_MOCHA[name] : OLD_MOCHA[name] && 1;
    if (words) {
      takenBack.push(process.argv.splice(at, words)[0].split('=')[0]);
      end -= words;
    } else {
      at += 1;
    }
  }
  write(null);
}

// Before Mocha 7.2 its reporter `json` does not say of which file a test is.
function nameFilesInReport(folder) {
  const reporter = path.join(folder, 'lib', 'reporters', 'json.js');
  if (/\bfile: test\.file\b/.test(fs.readFileSync(reporter, 'utf8'))) return;
  require(reporter);
  require.cache[fs.realpathSync(reporter)].exports = require('./mocha_report.cjs');
}

function settingsOfVitest() {
  const runs = process.argv.includes('run') || process.argv.includes('--run');
  if (runs) process.argv.push(`--reporter=${path.join(__dirname, 'vitest_settings.mjs')}`);
}

function mainProgram() {
  try {
    return fs.realpathSync(process.argv[1]);
  } catch {
    return '';
  }
}

// Before Mocha 6 the program `mocha` runs `_mocha` in a process of its own; before 2, with an option for its streams
// that Node no longer has.
function startsAnother(folder) {
  const { version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  if (parseInt(version, 10) >= 6 || path.basename(mainProgram()) !== 'mocha') return false;
  const processes = require('child_process');
  const { spawn } = processes;
  process.env[GIVEN] = process.argv.length - 2;
  processes.spawn = (program, words, options) => spawn(program, words, { stdio: 'inherit', ...options });
  return true;
}

function begin() {
  const found = /^(.*[\\/]node_modules[\\/](mocha|jest|jest-cli|vitest|react-scripts))[\\/]/.exec(mainProgram());
  if (!found || !require('worker_threads').isMainThread) return;
  const [, folder, runner] = found;
  if (runner === 'mocha' && startsAnother(folder)) return;
  // Programs that tests start have the project's own options alone.
  if (runner !== 'react-scripts') {
    const options = (process.env.NODE_OPTIONS ?? '').replace(/--require="[^"]*node_settings\.cjs"/, '').trim();
    if (options) process.env.NODE_OPTIONS = options;
    else delete process.env.NODE_OPTIONS;
  }
  if (runner === 'mocha') {
    nameFilesInReport(folder);
    settingsOfMocha(folder);
  } else if (runner === 'vitest') settingsOfVitest();
  else settingsOfJest();
}

begin();
