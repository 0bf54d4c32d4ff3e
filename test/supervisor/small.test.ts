// What runs for as long as the service does is small: the supervisor and the router workers load no more than they need.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

const source = join(import.meta.dirname, '../../src');

/** The files and the parts of Node.js that a process has loaded with a module of ours. */
function loadedWith(path: string): string[] {
  const program = `
    require('node:module').registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) });
    require(${JSON.stringify(join(source, path))});
    console.log(process.moduleLoadList.join('\\n'));`;
  return execFileSync(process.execPath, ['-e', program], { encoding: 'utf8', env: {} }).split('\n');
}

/** 15 MiB: src/lib/node-http.ts says how it gets in. */
const isFetch = (name: string) => name === 'NativeModule internal/deps/undici/undici';
const packageOf = (name: string) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(name)?.[1] ?? [];

test('the supervisor loads no package, no server and no database', () => {
  const loaded = loadedWith('supervisor/supervise.ts');
  assert.deepEqual(loaded.flatMap(packageOf), []);
  assert.deepEqual(
    loaded.filter((name) => isFetch(name) || /^NativeModule (http|sqlite)$/.test(name)),
    [],
  );
});

test('a router worker loads no package', () => {
  const loaded = loadedWith('traffic/worker/worker.ts');
  assert.deepEqual(loaded.filter(isFetch), []);
  assert.deepEqual(loaded.flatMap(packageOf), []);
});

test('the control process does not load fetch before it is used', () => {
  assert.deepEqual(loadedWith('run.ts').filter(isFetch), []);
});
