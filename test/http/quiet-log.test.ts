// What the log of requests says at its usual level: changes, and what was refused. Reads are there at `debug`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { startApp } from '../helpers/app.ts';

async function linesAt(level: 'info' | 'debug'): Promise<string[]> {
  const lines: { msg: string; method: string; path: string; status: number }[] = [];
  const log = pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const app = await startApp({ log });
  try {
    const { body } = await app.call('POST', '/v1/projects', { body: { name: 'Shop' } });
    await app.call('GET', `/v1/projects/${body.id}`);
    await app.call('GET', '/v1/projects');
    await fetch(`${app.url}/livez`);
    await app.call('GET', '/v1/projects/prj_00000000000000000000000000');
    await app.call('PATCH', `/v1/projects/${body.id}`, { body: { description: 'new' } });
    return lines
      .filter(({ msg }) => msg === 'request')
      .map(({ method, path, status }) => `${method} ${path.replace(body.id, 'ID')} ${status}`);
  } finally {
    await app.stop();
  }
}

test('info: one line for each change, and one for what was refused', async () => {
  assert.deepEqual(await linesAt('info'), [
    'POST /v1/projects 201',
    'GET /v1/projects/prj_00000000000000000000000000 404',
    'PATCH /v1/projects/ID 200',
  ]);
});

test('debug: reads, too', async () => {
  const lines = await linesAt('debug');
  for (const line of ['GET /v1/projects/ID 200', 'GET /v1/projects 200', 'GET /livez 200'])
    assert.ok(lines.includes(line), line);
});
