import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pino } from 'pino';
import type { EnvironmentRoutes } from '../data-plane.ts';
import { tablePathIn } from './agent-protocol.ts';
import { DiskTableWriter, readDiskTable } from './routing-files.ts';

const dir = mkdtempSync(join(tmpdir(), 'sluice-routing-'));
after(() => rmSync(dir, { recursive: true }));
const names = ['a', 'b', 'c'];
const routesOf = (environment: string): EnvironmentRoutes => ({
  ...{ project: 'prj_1', environment },
  hosts: [{ name: `${environment}.localhost`, secure: false }],
  shares: [],
});

async function write(): Promise<string[]> {
  const writer = new DiskTableWriter(dir, pino({ level: 'silent' }), () => ({
    version: 7,
    environments: names.map(routesOf),
  }));
  writer.replace();
  await writer.settle();
  return readFileSync(tablePathIn(dir), 'utf8').split('\n');
}

const read = () => {
  const table = readDiskTable(dir)!;
  return {
    version: table.version,
    names: table.environments.map(({ environment }) => environment),
    damaged: table.damaged,
  };
};

test('whatever is damaged is left out, and the rest serves', async () => {
  const lines = await write();
  assert.deepEqual(read(), { version: 7, names, damaged: 0 });
  const damages = [
    (line: string) => line.slice(0, 20),
    (line: string) => line.replace('localhost', 'localhosu'),
    () => '\0\0\0\0',
    () => '{"routes":',
  ];
  for (const damage of damages) {
    writeFileSync(tablePathIn(dir), lines.map((line, index) => (index === 2 ? damage(line) : line)).join('\n'));
    assert.deepEqual(read(), { version: 7, names: ['a', 'c'], damaged: 1 });
  }
  writeFileSync(tablePathIn(dir), lines.with(0, 'x').join('\n'));
  assert.deepEqual(read(), { version: 0, names, damaged: 1 });
});

test('a table of a version that wrote no checksums is read', async () => {
  const lines = await write();
  writeFileSync(tablePathIn(dir), lines.map((line) => line.slice(9)).join('\n'));
  assert.deepEqual(read(), { version: 7, names, damaged: 0 });
});
