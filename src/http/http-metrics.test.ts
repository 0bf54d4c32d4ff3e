import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from './http-metrics.ts';

test('the time of a response counts in every bucket that it fits in', async () => {
  const { registry, observe } = createMetrics();
  for (const seconds of [0.001, 0.3, 11]) observe('GET', '/v1/projects/:id', 200, seconds);
  observe('POST', '/v1/projects', 404, 0.02);
  const text = await registry.metrics();
  const name = 'sluice_http_request_duration_seconds';
  const labels = 'method="GET",route="/v1/projects/:id",status="200"';
  assert.match(text, new RegExp(`^# TYPE ${name} histogram$`, 'm'));
  for (const [le, count] of Object.entries({ '0.001': 1, '0.25': 1, '0.5': 2, '10': 2, '+Inf': 3 })) {
    assert.ok(text.includes(`${name}_bucket{le="${le}",${labels}} ${count}\n`), `${le} in\n${text}`);
  }
  assert.ok(text.includes(`${name}_sum{${labels}} 11.301\n`));
  assert.ok(text.includes(`${name}_count{${labels}} 3\n`));
  assert.ok(text.includes(`${name}_count{method="POST",route="/v1/projects",status="404"} 1\n`));
});
