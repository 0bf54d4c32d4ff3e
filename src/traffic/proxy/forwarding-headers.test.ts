import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { addForwarding, answerHeaders, peerOf, readHead } from './forwarding-headers.ts';

describe('who asked', () => {
  const socket = (fields: object) => ({ localPort: 8000, ...fields }) as Socket;
  const forwarded = (fields: object) => {
    const headers: string[] = [];
    addForwarding(headers, peerOf(socket(fields)), 'shop.example');
    return Object.fromEntries(Array.from({ length: headers.length / 2 }, (_, i) => headers.slice(i * 2, i * 2 + 2)));
  };

  test('an IPv6 address is quoted and in brackets (RFC 7239)', () => {
    const headers = forwarded({ remoteAddress: '2001:db8::1' });
    assert.equal(headers['X-Forwarded-For'], '2001:db8::1');
    assert.equal(headers.Forwarded, 'for="[2001:db8::1]";proto=http;host="shop.example"');
  });

  test('an IPv4 address in the clothes of IPv6 is one of IPv4', () => {
    assert.equal(forwarded({ remoteAddress: '::ffff:192.0.2.7' })['X-Forwarded-For'], '192.0.2.7');
  });

  test('over TLS the protocol is https', () => {
    const headers = forwarded({ remoteAddress: '192.0.2.7', encrypted: true, localPort: 8443 });
    assert.equal(headers['X-Forwarded-Proto'], 'https');
    assert.equal(headers['X-Forwarded-Port'], '8443');
    assert.equal(headers.Forwarded, 'for=192.0.2.7;proto=https;host="shop.example"');
  });
});

describe('the head of a request', () => {
  test('keeps names, order and repetition', () => {
    const raw = ['Host', 'a', 'X-B', '1', 'x-b', '2', 'Accept', '*/*'];
    assert.deepEqual(readHead(raw).headers, raw);
  });

  test('what says where the message ends stays, even where Connection names it', () => {
    const raw = ['Host', 'a', 'Connection', 'content-length, host, x-a', 'Content-Length', '3', 'X-A', '1'];
    const { headers, hasBody } = readHead(raw);
    assert.deepEqual(headers, ['Host', 'a', 'Content-Length', '3']);
    assert.equal(hasBody, true);
  });

  test('knows whether there is a body', () => {
    assert.equal(readHead(['Content-Length', '0']).hasBody, false);
    assert.equal(readHead(['content-length', '1']).hasBody, true);
    assert.equal(readHead(['Transfer-Encoding', 'Chunked']).hasBody, true);
    assert.equal(readHead(['Transfer-Encoding', 'gzip, chunked']).strangeEncoding, true);
  });

  test('finds the bucket in any of several cookie lines', () => {
    assert.equal(readHead(['Cookie', 'a=b', 'cookie', 'sluice_revision=7']).bucket, 7);
    assert.equal(readHead(['Cookie', 'a=b']).bucket, -1);
  });
});

describe('the head of an answer', () => {
  test('a length where there can be no body, and trailers where there can be none, are not announced', () => {
    assert.deepEqual(answerHeaders({ 'content-length': '5' }, true, false), []);
    assert.deepEqual(answerHeaders({ trailer: 'x', 'content-length': '5' }, false, true), ['content-length', '5']);
    assert.deepEqual(answerHeaders({ trailer: 'x' }, false, false), []);
    assert.deepEqual(answerHeaders({ trailer: 'x' }, false, true), ['trailer', 'x']);
  });
});
