import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startDns } from '../../test/helpers/dns.ts';
import { createLookup } from './dns-lookup.ts';

let folder: string;
let hostsFile: string;
let resolvFile: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-dns-'));
  hostsFile = join(folder, 'hosts');
  resolvFile = join(folder, 'resolv.conf');
  writeFileSync(hostsFile, '# comment\n10.1.2.3  registry Registry.internal # the one\n');
  writeFileSync(resolvFile, 'search ns.svc.test svc.test\noptions ndots:2\n');
});
after(() => rmSync(folder, { recursive: true }));

test('hosts file, search list, addresses; asked once for all who wait, and kept for a moment', async () => {
  const known: Record<string, string[]> = { 'shop.ns.svc.test': ['10.0.0.1'], 'hooks.example.com': ['192.0.2.7'] };
  const dns = await startDns((name) => known[name] ?? []);
  let nowMs = 0;
  const lookup = createLookup({ servers: [dns.server], hostsFile, resolvFile, nowMs: () => nowMs });
  assert.deepEqual(await lookup('REGISTRY'), [{ address: '10.1.2.3', family: 4 }]);
  assert.deepEqual(await lookup('localhost'), [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]);
  assert.deepEqual(await lookup('shop'), [{ address: '10.0.0.1', family: 4 }]);
  const asked = () => dns.questions.filter((name) => name === 'hooks.example.com').length;
  await Promise.all(Array.from({ length: 50 }, () => lookup('hooks.example.com')));
  await lookup('hooks.example.com');
  assert.equal(asked(), 1);
  nowMs += 60_000;
  await lookup('hooks.example.com');
  assert.equal(asked(), 2);
  await assert.rejects(lookup('nowhere.example.com'));
  dns.close();
});

test('a server that never answers costs a deadline once, and nothing else waits for it', async () => {
  const silent = createSocket('udp4');
  silent.bind(0, '127.0.0.1');
  await once(silent, 'listening');
  const servers = [`127.0.0.1:${(silent.address() as AddressInfo).port}`];
  const lookup = createLookup({ servers, hostsFile, resolvFile, timeoutMs: 300 });
  const names = Array.from({ length: 200 }, (_, n) => `${n}.silent.example.com`);
  const startedAt = performance.now();
  const all = Promise.allSettled(names.map((name) => lookup(name)));
  // The threads that getaddrinfo() would have held.
  assert.deepEqual(await lookup('registry.internal'), [{ address: '10.1.2.3', family: 4 }]);
  assert.ok((await all).every(({ status }) => status === 'rejected'));
  assert.ok(performance.now() - startedAt < 5000, 'all at the same time');
  await assert.rejects(lookup('7.silent.example.com'), 'that there was no answer is kept');
  silent.close();
});
