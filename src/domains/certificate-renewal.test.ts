import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ariId,
  askAgainMs,
  firstRenewAt,
  readWindow,
  renewAt,
  renewalMoment,
  retryDelayMs,
} from './certificate-renewal.ts';

const minute = 60_000;
const hourMs = 60 * minute;

test('waits grow from a minute to twelve hours', () => {
  const waits = Array.from({ length: 12 }, (_, index) => retryDelayMs(index + 1, null, 0.5) / minute);
  assert.deepEqual(waits, [1, 2, 5, 15, 30, 60, 120, 240, 480, 720, 720, 720]);
});

test('each is spread by a fifth to both sides', () => {
  assert.equal(retryDelayMs(1, null, 0), 48_000);
  assert.equal(retryDelayMs(1, null, 1), 72_000);
});

test('an authority that asks for more time gets it, up to a week', () => {
  assert.equal(retryDelayMs(1, 3 * hourMs, 0.5), 3 * hourMs);
  assert.equal(retryDelayMs(6, 1000, 0.5), hourMs);
  assert.equal(retryDelayMs(1, 1e12, 0.5), 7 * 24 * hourMs);
});

test('renewal is due at two thirds of the life', () => {
  assert.equal(renewAt(0, 90 * 24 * hourMs), 60 * 24 * hourMs);
  assert.equal(renewAt(30, 60), 50);
});

test('what was just issued is left alone for a while, whatever the clock says', () => {
  const month = 30 * 24 * hourMs;
  assert.equal(firstRenewAt(0, 3 * month, 0), 2 * month);
  assert.equal(firstRenewAt(0, 3 * month, 4 * month), 4 * month + hourMs);
  assert.equal(firstRenewAt(0, 60_000, 50_000), 70_000);
});

const hour = 3600_000;

test('the name of a certificate, as RFC 9773 has it', () => {
  assert.equal(ariId('69885B6B87464041E1B37B847BA0AE2CDE01C8D4', '87654321'), 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  assert.equal(ariId('01', '0187'), 'AQ.AYc');
  assert.equal(ariId('01', '187'), 'AQ.AYc');
});

test('a window is read, anything else is none', () => {
  const window = { start: '2030-01-02T04:00:00Z', end: '2030-01-03T04:00:00Z' };
  assert.deepEqual(readWindow({ suggestedWindow: window }), {
    start: Date.UTC(2030, 0, 2, 4),
    end: Date.UTC(2030, 0, 3, 4),
  });
  const turned = { start: window.end, end: window.start };
  for (const wrong of [null, undefined, {}, 'x', { suggestedWindow: {} }, { suggestedWindow: turned }, []]) {
    assert.equal(readWindow(wrong), null);
  }
});

test('renewed at two thirds of its life, or earlier where the authority suggests it', () => {
  const certificate = { not_before: 0, not_after: 90 * hour };
  assert.equal(renewalMoment(certificate, null, 0.5), 60 * hour);
  const early = { start: 10 * hour, end: 20 * hour };
  assert.equal(renewalMoment(certificate, early, 0), 10 * hour);
  assert.equal(renewalMoment(certificate, early, 0.5), 15 * hour);
  assert.equal(renewalMoment(certificate, { start: 70 * hour, end: 80 * hour }, 0), 60 * hour);
});

test('asked every six hours, or as the authority wants, but once a day', () => {
  assert.equal(askAgainMs(null), 6 * hour);
  assert.equal(askAgainMs(60_000), 6 * hour);
  assert.equal(askAgainMs(10 * hour), 10 * hour);
  assert.equal(askAgainMs(1000 * hour), 24 * hour);
});
