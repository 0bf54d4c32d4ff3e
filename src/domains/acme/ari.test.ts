import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ariId, askAgainMs, readWindow, renewalMoment } from './ari.ts';

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
