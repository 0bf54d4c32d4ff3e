import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange } from '../lib/address.ts';
import { type Exposure, mayReachLoopback } from './receiver-addresses.ts';

const alone: Exposure = { host: '127.0.0.1', servesApi: true, trustedProxies: [], urls: [null, null] };

test('a service that only this machine can reach', () => {
  for (const host of ['127.0.0.1', '127.8.8.8', 'localhost', '::1']) assert.ok(mayReachLoopback({ ...alone, host }));
  for (const url of ['http://localhost:8080', 'http://sluice.localhost', 'http://[::1]:8080', 'http://127.0.0.1'])
    assert.ok(mayReachLoopback({ ...alone, urls: [url, null] }), url);
});

test('one that others can reach, or may reach', () => {
  const exposed: Partial<Exposure>[] = [
    { host: '0.0.0.0' },
    { host: '::' },
    { host: '10.0.0.1' },
    { host: 'sluice.example' },
    { servesApi: false },
    { trustedProxies: [parseRange('127.0.0.1/32')!] },
    { urls: ['https://sluice.example', null] },
    { urls: [null, 'https://sluice.example'] },
    { urls: ['http://10.0.0.1:8080', null] },
    { urls: ['http://localhost.attacker.example', null] },
    { urls: ['not an address', null] },
  ];
  for (const one of exposed)
    assert.equal(mayReachLoopback({ ...alone, ...one }), false, JSON.stringify(Object.keys(one)));
});
