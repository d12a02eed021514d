// A reporter of Vitest that prints nothing. Before tests run it takes back settings of the project that select tests,
// stop after a failure, repeat or reorder, unless the command line has them; it writes what it took back, and which
// tests Vitest has, to a file in HOME.
import { writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const RECORD = join(homedir(), 'test-settings.json');
const NEUTRAL = {
  bail: 0,
  retry: 0,
  repeats: 0,
  testNamePattern: undefined,
  tagsFilter: undefined,
  shard: undefined,
  changed: undefined,
  passWithNoTests: false,
};

const isSpelled = (name) =>
  process.argv.slice(2).some((word) => [`--${name}`, ...(name === 'testNamePattern' ? ['-t'] : [])].includes(word.split('=')[0]));

export default class Settings {
  takenBack = new Set();
  collected = [];

  onInit(context) {
    const projects = (context.projects ?? []).map((project) => project.config).filter(Boolean);
    for (const config of new Set([context.config, ...projects])) this.takeBack(config);
    const copied = context.configOverride; // of the root's configuration, for every project
    if (copied?.testNamePattern && !isSpelled('testNamePattern')) delete copied.testNamePattern;
  }

  takeBack(config) {
    for (const [name, value] of Object.entries(NEUTRAL)) {
      const now = config[name];
      const isSet = now !== undefined && now !== null && now !== false && now !== 0 && now !== value;
      if (isSet && !isSpelled(name)) {
        config[name] = value;
        this.takenBack.add(name);
      }
    }
    const order = config.sequence ?? {};
    if (order.shuffle && !isSpelled('sequence.shuffle')) {
      const Order = Object.getPrototypeOf(order.sequencer ?? Object);
      if (typeof Order === 'function' && Order.prototype?.sort) order.sequencer = Order;
      order.shuffle = false;
      this.takenBack.add('sequence.shuffle');
    }
  }

  onCollected(files) {
    for (const file of files ?? []) this.add(file, [], file.filepath);
    this.write();
  }

  onTestModuleCollected(module) {
    for (const test of module.children.allTests()) this.collected.push(`${module.moduleId}::${test.fullName}`);
    this.write();
  }

  add(suite, titles, path) {
    for (const task of suite.tasks ?? []) {
      const names = [...titles, task.name];
      if (task.type === 'suite') this.add(task, names, path);
      else this.collected.push(`${path}::${names.join(' > ')}`);
    }
  }

  write() {
    const record = { taken_back: [...this.takenBack].sort(), collected: [...new Set(this.collected)] };
    try {
      writeFileSync(RECORD, JSON.stringify(record));
    } catch {
      // tests may have no HOME that they can write
    }
  }
}
