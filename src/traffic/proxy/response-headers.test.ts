import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { responseHeaders } from './response-headers.ts';

describe('the head of a response', () => {
  test('a length where there can be no body, and trailers where there can be none, are not announced', () => {
    assert.deepEqual(responseHeaders({ 'content-length': '5' }, true, false), []);
    assert.deepEqual(responseHeaders({ trailer: 'x', 'content-length': '5' }, false, true), ['content-length', '5']);
    assert.deepEqual(responseHeaders({ trailer: 'x' }, false, false), []);
    assert.deepEqual(responseHeaders({ trailer: 'x' }, false, true), ['trailer', 'x']);
  });
});
