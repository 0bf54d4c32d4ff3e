import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRange } from '../../lib/address.ts';
import { believedPeer } from './believed-peer.ts';
import { peerFor } from './forwarding-headers.ts';

const trusted = [parseRange('10.0.0.0/8')!];
const peerAt = (address: string) => peerFor({ address, proto: 'http', port: '8000', serverName: null });
const believed = (from: string, ...raw: string[]) => {
  const { address, proto } = believedPeer(peerAt(from), raw, trusted);
  return `${proto} ${address}`;
};

test('what a stranger says about itself is not believed', () => {
  assert.equal(
    believed('192.0.2.1', 'X-Forwarded-For', '198.51.100.7', 'X-Forwarded-Proto', 'https'),
    'http 192.0.2.1',
  );
});

test('what a trusted proxy says is', () => {
  assert.equal(
    believed('10.0.0.1', 'X-Forwarded-For', '198.51.100.7', 'x-forwarded-proto', 'https'),
    'https 198.51.100.7',
  );
  assert.equal(believed('10.0.0.1', 'X-Forwarded-For', '2001:db8::7'), 'http 2001:db8::7');
});

test('of several, the last that is no trusted proxy: what stands before it may be made up', () => {
  assert.equal(believed('10.0.0.1', 'X-Forwarded-For', '1.2.3.4, 198.51.100.7, 10.9.9.9'), 'http 198.51.100.7');
  assert.equal(
    believed('10.0.0.1', 'X-Forwarded-For', '1.2.3.4', 'X-Forwarded-For', '198.51.100.7'),
    'http 198.51.100.7',
  );
});

test('nonsense leaves the proxy itself', () => {
  for (const nonsense of ['', 'unknown', '1.2.3.4, me', '10.0.0.9']) {
    assert.equal(believed('10.0.0.1', 'X-Forwarded-For', nonsense, 'X-Forwarded-Proto', 'gopher'), 'http 10.0.0.1');
  }
  assert.equal(believed('10.0.0.1'), 'http 10.0.0.1');
});
