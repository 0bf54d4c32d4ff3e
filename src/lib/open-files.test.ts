import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capConnections, readOpenFileLimit } from './open-files.ts';

const limits = (soft: string) => () =>
  `Limit                     Soft Limit           Hard Limit           Units
Max processes             95836                95836                processes
Max open files            ${soft.padEnd(20)} 1048576              files
`;

test('the limit is the one in force', () => {
  assert.equal(readOpenFileLimit(limits('1024')), 1024);
  assert.equal(readOpenFileLimit(limits('unlimited')), null);
  assert.ok(readOpenFileLimit()! > 0);
  const fail = () => {
    throw new Error('no such file');
  };
  assert.equal(readOpenFileLimit(fail), null);
});

test('connections leave room for everything else', () => {
  assert.equal(capConnections(20_000, 2, null), 20_000);
  assert.equal(capConnections(20_000, 2, 1_048_576), 20_000);
  assert.equal(capConnections(20_000, 2, 1024), 384);
  assert.equal(capConnections(20_000, 1, 1024), 768);
  assert.equal(capConnections(10, 2, 1024), 10);
  assert.equal(capConnections(10, 4, 4), 1);
});
