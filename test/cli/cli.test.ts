// The command line: finding the service, wrong use, the doctor.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { adminToken, isolatedEnv, onPostgres, startApp } from '../helpers/app.ts';
import { cli, envOf, onTerminal } from '../helpers/cli.ts';
import { startService } from '../helpers/service.ts';
import { sharedApp } from '../helpers/shared-app.ts';

let known: Record<string, string>;
const t = sharedApp({}, () => {
  known = envOf(t.url);
});

const folder = () => mkdtempSync(join(tmpdir(), 'sluice-cli-test-'));

test('login tries the token, keeps it where only its owner reads, and logout removes it', async () => {
  const home = folder();
  const env = { XDG_CONFIG_HOME: join(home, 'config') };
  const path = join(home, 'config/sluice/login.json');
  const refused = await cli(['login', t.url, '--token-stdin'], env, { input: 'slc_not_a_token_of_this_service\n' });
  assert.equal(refused.code, 4, refused.stderr);
  assert.match(refused.stderr, /Invalid token[\s\S]*Request req_/);
  assert.ok(!existsSync(path), 'what does not work is not stored');

  const done = await cli(['login', `${t.url}/v1/`, '--token-stdin', '--json'], env, { input: `${adminToken}\n` });
  assert.equal(done.code, 0, done.stderr);
  assert.equal(JSON.parse(done.stdout).url, t.url);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(join(home, 'config/sluice')).mode & 0o777, 0o700);
  assert.ok(!(done.stdout + done.stderr).includes(adminToken), 'the token is not printed');

  const current = await cli(['tokens', 'current'], env);
  assert.match(current.stdout, /admin: \*/);
  assert.match(current.stderr, /found by the login in /);
  assert.equal((await cli(['logout'], env)).code, 0);
  assert.ok(!existsSync(path));
  assert.match((await cli(['logout'], env)).stdout, /Nothing was stored/);
  rmSync(home, { recursive: true });
});

test('login asks for the token on a terminal and shows nothing of it', async () => {
  const home = folder();
  const asking = onTerminal(['login', t.url], { XDG_CONFIG_HOME: home }, { input: null });
  await asking.says(/not shown\): /);
  asking.child.stdin!.write(`${adminToken}\r`);
  const { stdout: shown, code } = await asking.ended;
  assert.equal(code, 0, shown);
  assert.match(shown, /Token for .* \(not shown\):[\s\S]*Logged in to/);
  assert.ok(!shown.slice(shown.indexOf('not shown')).includes(adminToken));
  assert.equal(JSON.parse(readFileSync(join(home, 'sluice/login.json'), 'utf8')).token, adminToken);
  rmSync(home, { recursive: true });
});

test('a token is never an argument, and away from a terminal there is no prompt', async () => {
  assert.equal((await cli(['login', t.url, '--token', adminToken])).code, 2);
  assert.equal((await cli(['login', t.url])).code, 2);
});

test('the environment comes before the login, the login before the data directory; a stored token goes nowhere else', async () => {
  const home = folder();
  const data = join(home, 'data');
  const env = { XDG_CONFIG_HOME: home, SLUICE_DATA_DIR: data };
  execFileSync('mkdir', [data]);
  writeFileSync(join(data, 'admin-token'), `${adminToken}\n`);
  writeFileSync(join(data, 'address'), `${t.url}\n`);
  assert.match((await cli(['tokens', 'current'], env)).stderr, /found by the data directory/);
  await cli(['login', t.url, '--token-stdin'], env, { input: adminToken });
  assert.match((await cli(['tokens', 'current'], env)).stderr, /found by the login/);
  assert.match(
    (await cli(['tokens', 'current'], { ...env, ...known })).stderr,
    /found by SLUICE_API_URL and SLUICE_TOKEN/,
  );
  const sameAddress = await cli(['tokens', 'current'], { ...env, SLUICE_API_URL: `${t.url}/` });
  assert.match(sameAddress.stderr, /found by SLUICE_API_URL and the login/);

  let asked = 0;
  const other = createServer((_request, response) => response.end(String(asked++))).listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as { port: number };
  const refused = await cli(['projects'], { ...env, SLUICE_API_URL: `http://127.0.0.1:${port}` });
  assert.equal(refused.code, 4);
  assert.match(refused.stderr, /no token for http/);
  assert.equal(asked, 0, 'the other address has seen nothing');
  other.close();
  rmSync(home, { recursive: true });
});

test('a token from the environment or from standard input is not sent to what ./data/address says', async () => {
  const seen: string[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers.authorization ?? '');
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => other.once('listening', resolve));
  const cwd = folder();
  const url = `http://127.0.0.1:${(other.address() as { port: number }).port}`;
  mkdirSync(join(cwd, 'data'));
  writeFileSync(join(cwd, 'data', 'address'), `${url}\n`);
  const ask = (env: Record<string, string>) => cli(['projects'], env, { cwd });
  const { code, stderr } = await ask({ SLUICE_TOKEN: 'secret-of-mine' });
  assert.equal(code, 78);
  assert.match(stderr, /SLUICE_TOKEN is set and SLUICE_API_URL is not[\s\S]*SLUICE_API_URL=http:/);
  const admin = await ask({ SLUICE_ADMIN_TOKEN: 'admin-secret-of-mine' });
  assert.equal(admin.code, 4);
  assert.match(admin.stderr, /SLUICE_ADMIN_TOKEN is used together with SLUICE_DATA_DIR only/);
  const login = await cli(['login', '--token-stdin'], {}, { cwd, input: 'secret-of-mine' });
  assert.equal(login.code, 78);
  assert.match(login.stderr, new RegExp(`Name it: sluice login ${url}`));
  assert.deepEqual(seen, []);
  await ask({ SLUICE_TOKEN: 'secret-of-mine', SLUICE_API_URL: url });
  assert.ok(seen.length > 0, 'an address that was named');
  other.close();
  rmSync(cwd, { recursive: true });
});

test('on the machine of a service its data directory is enough, and it says so while it runs', async () => {
  const { env, dataDir, clean } = await isolatedEnv();
  const settings = { ...env, SLUICE_ADMIN_TOKEN: '' };
  const service = startService(settings);
  const url = await service.url;
  assert.equal(readFileSync(join(dataDir, 'address'), 'utf8'), `${url}\n`);
  assert.equal(statSync(join(dataDir, 'address')).mode & 0o777, 0o600);
  const { code, stdout, stderr } = await cli(['projects', 'create', 'Found'], { SLUICE_DATA_DIR: dataDir });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^prj_\w+ {2}found\n$/);
  service.child.kill('SIGTERM');
  await service.exited;
  assert.ok(!existsSync(join(dataDir, 'address')), 'forgotten when it stops');
  await clean();
});

for (const [what, args, env, code, told] of [
  ['an unknown command', ['delpoy'], {}, 2, /no command delpoy\. Did you mean deploy\?/],
  ['an unknown option', ['deploy', 'x', '--wiat'], {}, 2, /no option --wiat\. Did you mean --wait\?/],
  ['an unknown verb', ['projects', 'crate'], {}, 2, /no crate here\. Did you mean create\?/],
  ['an option of another verb', ['projects', 'list', '--slug', 'x'], {}, 2, /--slug does not belong to list/],
  ['a missing argument', ['deploy'], {}, 2, /IMAGE is missing/],
  ['one argument too many', ['deploy', 'a', 'b'], {}, 2, /b is one argument too many/],
  ['a number that is none', ['deploy', 'a', '--canary', 'x'], {}, 2, /--canary takes a whole number from 1 to 99/],
  ['a choice that is none', ['deploy', 'a', '--strategy', 'rollin'], {}, 2, /Did you mean rolling\?/],
  ['no service', ['projects'], { SLUICE_DATA_DIR: '/nowhere' }, 4, /No service is known[\s\S]*sluice login/],
  [
    'a service that is away',
    ['projects'],
    { SLUICE_API_URL: 'http://127.0.0.1:9', SLUICE_TOKEN: 'x' },
    5,
    /found by SLUICE_API_URL/,
  ],
  ['a wrong address', ['projects'], { SLUICE_API_URL: 'here' }, 78, /SLUICE_API_URL must be an address/],
] as [string, string[], Record<string, string>, number, RegExp][]) {
  test(`${what}: exit code ${code}, in words`, async () => {
    const result = await cli(args, env);
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stderr, told);
    assert.equal(result.stdout, '');
    assert.doesNotMatch(result.stderr, /\n\s+at /);
  });
}

test('errors of the service come with their request id; what is not there is exit code 3, with a suggestion', async () => {
  await cli(['projects', 'create', 'Library'], known);
  const typo = await cli(['projects', 'show', 'libary'], known);
  assert.equal(typo.code, 3);
  assert.match(typo.stderr, /no project libary\. Did you mean library\?/);
  const taken = await cli(['projects', 'create', 'Again', '--slug', 'library'], known);
  assert.equal(taken.code, 1);
  assert.match(taken.stderr, /Request req_\w+ \(slug_taken\); see http/);
  const asked = await cli(['projects', 'delete', 'library'], known);
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /Not a terminal: pass --yes/);
  const reader = JSON.parse(
    (await cli(['tokens', 'create', 'reader', '--scope', 'projects:read', '--json'], known)).stdout,
  );
  const forbidden = await cli(['projects', 'delete', 'library', '-y'], { ...known, SLUICE_TOKEN: reader.token });
  assert.equal(forbidden.code, 4);
  assert.match(forbidden.stderr, /projects:write/);
  assert.equal((await cli(['projects', 'delete', 'library', '-y'], known)).code, 0);
});

test('which project is meant: the only one, the named one, or a list to choose from', async () => {
  const alone = await startApp();
  const env = { SLUICE_API_URL: alone.url, SLUICE_TOKEN: adminToken };
  assert.match((await cli(['env'], env)).stderr, /no project yet[\s\S]*sluice projects create/);
  await cli(['projects', 'create', 'One'], env);
  assert.match((await cli(['env'], env)).stdout, /production/);
  await cli(['projects', 'create', 'Two'], env);
  const which = await cli(['env'], env);
  assert.equal(which.code, 2);
  assert.match(which.stderr, /Which project\? Add --project: two, one/);
  assert.match((await cli(['env', '-p', 'TWO'], env)).stdout, /two-production/);
  assert.match((await cli(['env'], { ...env, SLUICE_PROJECT: 'one' })).stdout, /one-production/);
  await alone.stop();
});

test('regions, and whether they answer', async () => {
  const { stdout } = await cli(['regions'], known);
  assert.match(stdout, /^NAME +ENGINE +STATE +HOSTS\nlocal +standin +answers +-\n$/);
  const [region] = JSON.parse((await cli(['regions', '--json'], known)).stdout);
  assert.deepEqual([region.name, region.available], ['local', true]);
});

test('settings and variables of an environment', async () => {
  const env = { ...known, SLUICE_PROJECT: 'settings' };
  await cli(['projects', 'create', 'Settings'], known);
  const set = await cli(['env', 'set', 'replicas=2', 'canary.steps=25,50', 'health_check.path=/up', '--json'], env);
  const { replicas, canary, health_check } = JSON.parse(set.stdout);
  assert.deepEqual([replicas, canary.steps, health_check.path], [2, [25, 50], '/up']);
  assert.equal((await cli(['env', 'set', 'health_check.path=null'], env)).stdout, 'health_check.path = null\n');
  assert.match((await cli(['env', 'set', 'replica=2'], env)).stderr, /Did you mean replicas\?/);
  assert.match((await cli(['env', 'set', 'replicas=99'], env)).stderr, /replicas/);
  await cli(['env', 'variables', 'A=1', 'B=x=y'], env);
  await cli(['env', 'variables', 'C'], env, { input: 'from stdin\n' });
  assert.deepEqual(JSON.parse((await cli(['env', 'variables', '--json'], env)).stdout), ['A', 'B', 'C']);
  await cli(['env', 'unset', 'B'], env);
  assert.match((await cli(['env', 'show'], env)).stdout, /variables +A, C\n/);
  await cli(['env', 'lock', 'moving house'], env);
  const refused = await cli(['deploy', 'shop:1'], env);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /moving house[\s\S]*sluice environments unlock/);
  assert.equal((await cli(['env', 'unlock'], env)).code, 0);
});

test('no output has colours away from a terminal; FORCE_COLOR brings them, NO_COLOR takes them', async () => {
  const plain = await cli(['projects'], known);
  assert.doesNotMatch(plain.stdout, /\x1b/);
  assert.match((await cli(['projects'], { ...known, FORCE_COLOR: '1' })).stdout, /\x1b\[2mSLUG/);
});

test('doctor looks at the database of the settings as it is, while the service runs on it', async () => {
  const { stdout } = await cli(['doctor'], { ...t.env, ...known });
  assert.match(stdout, new RegExp(`^ok +database +${onPostgres ? 'PostgreSQL' : 'SQLite'}, at version \\d+$`, 'm'));
  assert.match(stdout, /^ok +database size +\d+ MB.*: \d+ deployments, .*\d+ audit rows/m);
  assert.match(stdout, /^ok +region local +the stand-in, .*, as set$/m);
});

if (!onPostgres) {
  test('doctor: what works, what to do about the rest, and exit code 1 where something needed is broken', async () => {
    const isolated = await isolatedEnv();
    const { SLUICE_ADMIN_TOKEN: _, ...settings } = isolated.env;
    const healthy = await cli(['doctor'], { ...settings, ...known });
    assert.equal(healthy.code, 0, healthy.stdout);
    assert.match(healthy.stdout, /^ok +Node\.js +\d/m);
    assert.match(
      healthy.stdout,
      /^ok +API +http:\S+ answers; token admin \(\*\), found by SLUICE_API_URL and SLUICE_TOKEN/m,
    );
    const { port } = new URL(t.url);
    const running = await cli(['doctor'], { ...settings, ...known, SLUICE_PORT: port, SLUICE_DATA_DIR: t.dataDir });
    assert.match(running.stdout, new RegExp(`^ok +port +${port} is taken by a Sluice`, 'm'));
    assert.match(running.stdout, /^ok +database +SQLite, at version \d+$/m);

    const otherServer = createServer((_request, response) => response.end()).listen(0, '127.0.0.1');
    await new Promise((resolve) => otherServer.once('listening', resolve));
    const taken = String((otherServer.address() as { port: number }).port);
    const broken = {
      ...settings,
      SLUICE_PORT: taken,
      SLUICE_REGIONS: 'a=docker:/nowhere.sock',
      SLUICE_DATABASE_URL: 'postgres://127.0.0.1:9/none',
      SLUICE_API_URL: 'http://127.0.0.1:9',
      SLUICE_TOKEN: 'x',
    };
    const { code, stdout } = await cli(['doctor', '--json'], broken);
    assert.equal(code, 1);
    const { ok, findings } = JSON.parse(stdout) as {
      ok: boolean;
      findings: { level: string; what: string; todo?: string }[];
    };
    assert.equal(ok, false);
    const problems = findings.filter(({ level }) => level === 'problem');
    assert.deepEqual(
      problems.map(({ what }) => what),
      ['database', 'region a', 'port', 'API'],
    );
    for (const { todo } of problems) assert.ok(todo);
    const apart = { ...broken, SLUICE_ROLES: 'api,worker', SLUICE_ROUTER_PORT: taken };
    assert.doesNotMatch((await cli(['doctor'], apart)).stdout, /router/, 'the ports are those of another machine');
    const settingsWrong = await cli(['doctor'], { SLUICE_PORT: 'x' });
    assert.match(settingsWrong.stdout, /^problem +settings +SLUICE_PORT must be/m);
    otherServer.close();
    await isolated.clean();
  });
}
