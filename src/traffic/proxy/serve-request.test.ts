import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { parseRange } from '../../lib/address.ts';
import { addForwardedHeaders, clientBehindProxy, clientOf, describeClient } from './serve-request.ts';

describe('forwarded headers', () => {
  const socket = (fields: object) => ({ localPort: 8000, ...fields }) as Socket;
  const forwarded = (fields: object) => {
    const headers: string[] = [];
    addForwardedHeaders(headers, clientOf(socket(fields)), 'shop.example');
    return Object.fromEntries(Array.from({ length: headers.length / 2 }, (_, i) => headers.slice(i * 2, i * 2 + 2)));
  };

  test('an IPv6 address is quoted and in brackets (RFC 7239)', () => {
    const headers = forwarded({ remoteAddress: '2001:db8::1' });
    assert.equal(headers['X-Forwarded-For'], '2001:db8::1');
    assert.equal(headers.Forwarded, 'for="[2001:db8::1]";proto=http;host="shop.example"');
  });

  test('an IPv4 address mapped to IPv6 is shown as IPv4', () => {
    assert.equal(forwarded({ remoteAddress: '::ffff:192.0.2.7' })['X-Forwarded-For'], '192.0.2.7');
  });

  test('over TLS the protocol is https', () => {
    const headers = forwarded({ remoteAddress: '192.0.2.7', encrypted: true, localPort: 8443 });
    assert.equal(headers['X-Forwarded-Proto'], 'https');
    assert.equal(headers['X-Forwarded-Port'], '8443');
    assert.equal(headers.Forwarded, 'for=192.0.2.7;proto=https;host="shop.example"');
  });
});

const trusted = [parseRange('10.0.0.0/8')!];
const peerAt = (address: string) => describeClient({ address, proto: 'http', port: '8000', serverName: null });
const seenFrom = (from: string, ...raw: string[]) => {
  const { address, proto } = clientBehindProxy(peerAt(from), raw, trusted);
  return `${proto} ${address}`;
};

test('what an untrusted client says about itself is ignored', () => {
  assert.equal(
    seenFrom('192.0.2.1', 'X-Forwarded-For', '198.51.100.7', 'X-Forwarded-Proto', 'https'),
    'http 192.0.2.1',
  );
});

test('what a trusted proxy says counts', () => {
  assert.equal(
    seenFrom('10.0.0.1', 'X-Forwarded-For', '198.51.100.7', 'x-forwarded-proto', 'https'),
    'https 198.51.100.7',
  );
  assert.equal(seenFrom('10.0.0.1', 'X-Forwarded-For', '2001:db8::7'), 'http 2001:db8::7');
});

test('of several addresses the last that is no trusted proxy counts: the ones before it may be made up', () => {
  assert.equal(seenFrom('10.0.0.1', 'X-Forwarded-For', '1.2.3.4, 198.51.100.7, 10.9.9.9'), 'http 198.51.100.7');
  assert.equal(
    seenFrom('10.0.0.1', 'X-Forwarded-For', '1.2.3.4', 'X-Forwarded-For', '198.51.100.7'),
    'http 198.51.100.7',
  );
});

test('where the headers are nonsense the client is the proxy itself', () => {
  for (const nonsense of ['', 'unknown', '1.2.3.4, me', '10.0.0.9']) {
    assert.equal(seenFrom('10.0.0.1', 'X-Forwarded-For', nonsense, 'X-Forwarded-Proto', 'gopher'), 'http 10.0.0.1');
  }
  assert.equal(seenFrom('10.0.0.1'), 'http 10.0.0.1');
});
