// The public addresses: SLUICE_BASE_URL is the catalogue's, SLUICE_API_URL the API's; the one stands in for the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startApp } from '../helpers/app.ts';

const cases: { env: Record<string, string>; base: string | null; api: string }[] = [
  { env: { SLUICE_BASE_URL: 'https://media.example' }, base: 'https://media.example', api: 'https://media.example' },
  { env: { SLUICE_API_URL: 'https://api.example' }, base: null, api: 'https://api.example' },
  {
    env: { SLUICE_BASE_URL: 'https://media.example', SLUICE_API_URL: 'https://api.example' },
    base: 'https://media.example',
    api: 'https://api.example',
  },
];

for (const { env, base, api } of cases) {
  test(`with ${Object.keys(env).join(' and ')}`, async () => {
    const t = await startApp({ env });
    const { port } = t.app.server.server.address() as { port: number };
    const local = `http://127.0.0.1:${port}`;
    try {
      assert.equal(t.app.baseUrl(), base ?? local);
      const missing = await (await fetch(`${local}/v1/projects`)).json();
      assert.equal(missing.error.docs, `${api}/docs/errors#token_missing`);
      const created = await fetch(`${local}/v1/projects`, {
        method: 'POST',
        headers: { authorization: `Bearer ${t.env.SLUICE_ADMIN_TOKEN}`, 'content-type': 'application/json' },
        body: '{"name":"Shop"}',
      });
      assert.equal(created.headers.get('location'), `${api}/v1/projects/${(await created.json()).id}`);
      const reference = await (await fetch(`${local}/docs/reference`)).text();
      assert.ok(reference.includes(`href="${base ?? local}/api/streams.json"`));
      assert.ok(reference.includes(`curl ${api}/v1/projects`));
    } finally {
      await t.stop();
    }
  });
}
