import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readPostgresUrl } from './postgres-url.ts';

const serversOf = (url: string) => readPostgresUrl(url).servers;

test('one address is left as it is', () => {
  for (const url of [
    'postgres://u:p%40ss@db.example:5433/sluice?sslmode=require',
    'postgresql://db.example/sluice',
    'postgres://u@[::1]:5432/sluice',
    'postgres:///sluice?host=%2Fvar%2Frun%2Fpostgresql',
    'postgres://u@/sluice?host=%2Fvar%2Frun%2Fpostgresql',
  ])
    assert.deepEqual(serversOf(url), [url]);
});

test('several addresses share all else', () => {
  const url = 'postgres://u:a,b@one:5432,two,[::1]:5433/sluice?target_session_attrs=read-write&sslmode=require';
  assert.deepEqual(serversOf(url), [
    'postgres://u:a,b@one:5432/sluice?sslmode=require',
    'postgres://u:a,b@two/sluice?sslmode=require',
    'postgres://u:a,b@[::1]:5433/sluice?sslmode=require',
  ]);
});

test('limits and the pooler are taken out of it', () => {
  assert.deepEqual(readPostgresUrl('postgres://h/d?pgbouncer=true&statement_timeout=60000&connect_timeout=2'), {
    servers: ['postgres://h/d'],
    pooled: true,
    statementTimeoutMs: 60_000,
    connectTimeoutMs: 2000,
  });
  const { pooled, statementTimeoutMs, connectTimeoutMs } = readPostgresUrl('postgres://h/d');
  assert.deepEqual([pooled, statementTimeoutMs, connectTimeoutMs], [false, 15_000, 5000]);
});

test('mistakes are told', () => {
  const mistakes: [string, RegExp][] = [
    ['mysql://h/d', /^must be an address that begins with postgres/],
    ['postgres://one:port,two/d', /^is not an address/],
    ['postgres://h/d?statement_timeout=0', /^has a statement_timeout that is not a whole number above 0/],
    ['postgres://h/d?connect_timeout=soon', /^has a connect_timeout/],
    ['postgres://h/d?target_session_attrs=standby', /^has a target_session_attrs other than any, read-write, primary/],
  ];
  for (const [url, message] of mistakes) assert.throws(() => readPostgresUrl(url), { message });
});
