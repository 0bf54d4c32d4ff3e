// Sessions of the console: a cookie for one path alone, short-lived tokens, and what ends them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { adminToken, startApp, type TestApp } from '../../helpers/app.ts';

let t: TestApp;
before(async () => {
  t = await startApp();
});
after(() => t.stop());

const session = '/console/session';
const own = () => ({ origin: t.url });

async function signIn(token = adminToken) {
  const { status, headers, body } = await t.call('POST', session, { token, headers: own() });
  assert.equal(status, 200, JSON.stringify(body));
  const set = headers.get('set-cookie')!;
  return { set, cookie: set.split(';', 1)[0]!, access: body.token as string, expiresAt: Date.parse(body.expires_at) };
}

const renew = (cookie: string, headers: Record<string, string> = own()) =>
  t.call('POST', `${session}/token`, { token: null, headers: { ...headers, cookie } });
const codeOf = async (token: string, path = '/v1/token') => {
  const { status, body } = await t.call('GET', path, { token });
  return status === 200 ? 'ok' : body.error.code;
};

test('the cookie is for scripts unreadable and for its path alone; the token it gives is short-lived', async () => {
  const { set, cookie, access, expiresAt } = await signIn();
  assert.match(set, /^sluice_session=[\w-]{43}; Path=\/console\/session; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
  assert.ok(expiresAt - Date.now() < 11 * 60_000);
  const { body } = await t.call('GET', '/v1/token', { token: access });
  assert.equal(body.name, 'admin', 'it is the token that signed in');
  const again = await renew(cookie);
  assert.equal(again.status, 200);
  assert.equal(await codeOf(again.body.token), 'ok');
  assert.equal(
    (await t.call('GET', '/v1/token', { token: null, headers: { cookie } })).body.error.code,
    'token_missing',
  );
  const overTls = await t.call('POST', session, { headers: { origin: t.url.replace('http:', 'https:') } });
  assert.match(overTls.headers.get('set-cookie')!, /; Secure$/);
});

test('403 for other origins and for none; 401 without a session, for a forged or an old token', async () => {
  const { cookie, access } = await signIn();
  for (const headers of [
    {},
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { ...own(), 'sec-fetch-site': 'cross-site' },
  ]) {
    assert.equal((await renew(cookie, headers as Record<string, string>)).status, 403);
    assert.equal((await t.call('POST', session, { headers: headers as Record<string, string> })).status, 403);
  }
  assert.equal((await renew('sluice_session=')).status, 204, 'nobody is signed in');
  assert.equal((await renew(`sluice_session=${'A'.repeat(43)}`)).status, 401);
  const wrong = await t.call('POST', session, { token: 'slc_wrong', headers: own() });
  assert.deepEqual([wrong.status, wrong.body.error.code], [401, 'token_invalid']);
  assert.equal(
    (await t.call('POST', session, { token: access, headers: own() })).status,
    401,
    'no session of a session',
  );
  const [head, end, mac] = access.split('.') as [string, string, string];
  const later = (Number.parseInt(end, 36) + 1000).toString(36);
  assert.equal(await codeOf([head, later, mac].join('.')), 'token_invalid');
  assert.equal(await codeOf([head, end, mac.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))].join('.')), 'token_invalid');
});

test('a session ends when one signs out, when it is ended from elsewhere, and with its token', async () => {
  const first = await signIn();
  const gone = await t.call('DELETE', session, { token: null, headers: { ...own(), cookie: first.cookie } });
  assert.equal(gone.status, 204);
  assert.match(gone.headers.get('set-cookie')!, /^sluice_session=; .*Max-Age=0/);
  assert.equal(await codeOf(first.access), 'token_revoked');
  assert.equal((await renew(first.cookie)).status, 401);

  const second = await signIn();
  const { data } = (await t.call('GET', '/v1/sessions', { token: second.access })).body;
  const current = data.find((each: { current: boolean }) => each.current);
  assert.deepEqual([current.token_name, current.address], ['admin', '127.0.0.1']);
  assert.equal((await t.call('DELETE', `/v1/sessions/${current.id}`)).status, 204);
  assert.equal(await codeOf(second.access), 'token_revoked');
  assert.equal((await t.call('DELETE', `/v1/sessions/${current.id}`)).status, 404);

  const { body } = await t.call('POST', '/v1/tokens', {
    body: { name: 'short', scopes: ['projects:read', 'events:read'] },
  });
  const third = await signIn(body.token);
  assert.equal(await codeOf(third.access, '/v1/webhooks'), 'insufficient_scope', 'no wider than its token');
  assert.equal(await codeOf(third.access, '/v1/sessions'), 'ok');
  const listed = (await t.call('GET', '/v1/sessions', { token: third.access })).body.data;
  assert.equal(listed.length, 1, 'without tokens:read only its own');
  const foreign = await signIn();
  const { data: all } = (await t.call('GET', '/v1/sessions')).body;
  const other = all.find((each: { token_name: string }) => each.token_name === 'admin').id;
  assert.equal((await t.call('DELETE', `/v1/sessions/${other}`, { token: third.access })).status, 404);
  const following = await fetch(`${t.url}/v1/events/stream`, { headers: { authorization: `Bearer ${third.access}` } });
  await t.call('DELETE', `/v1/tokens/${body.id}`);
  await following.text();
  assert.equal(await codeOf(third.access), 'token_revoked');
  assert.equal((await renew(third.cookie)).status, 401);
  assert.equal(await codeOf(foreign.access), 'ok');
});
