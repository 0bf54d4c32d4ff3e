import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { UnreadResponses } from './unread-responses.ts';

const newResponse = () => new EventEmitter() as unknown as ServerResponse;
const large = 'x'.repeat(4 * 1024 * 1024);

test('an account that leaves too much unread gets 503 until it has read; others are not concerned', () => {
  const unread = new UnreadResponses();
  const responses = Array.from({ length: 4 }, newResponse);
  for (const response of responses) {
    unread.require('acc_a');
    unread.add('acc_a', large, response);
  }
  assert.throws(() => unread.require('acc_a'), { code: 'busy' });
  unread.require('acc_b');
  responses[0]!.emit('close');
  unread.require('acc_a');
});

test('small responses do not count', () => {
  const unread = new UnreadResponses();
  for (let count = 0; count < 2000; count++) unread.add('acc_a', 'x'.repeat(10_000), newResponse());
  unread.require('acc_a');
});
