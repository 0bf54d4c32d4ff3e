// A backup taken while the service runs, restored where nothing was: its deployment, its webhook and its certificate go on
// working. From each database to the same, and from PostgreSQL to SQLite.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { verifySignature } from '../../../src/client/signature.ts';
import { call, isolatedEnv, onPostgres } from '../../helpers/app.ts';
import { cli } from '../../helpers/cli.ts';
import { answering, Receiver } from '../../helpers/receiver.ts';
import { type Service, startService } from '../../helpers/service.ts';
import { visitPlain } from '../../helpers/tls-visit.ts';
import { until } from '../../helpers/wait.ts';

async function end(service: Service): Promise<void> {
  service.child.kill('SIGTERM');
  await service.exited;
}

/** The fingerprint of the certificate that visitors of the name get. */
function certificateOf(service: Service, servername: string): Promise<string> {
  const port = Number(/answer with TLS on port (\d+)/.exec(service.output())![1]);
  return new Promise((resolve, reject) => {
    // Which certificate it is, is compared; that it is trusted, other tests show.
    const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

const kinds = onPostgres ? ['PostgreSQL', 'SQLite'] : ['SQLite'];

for (const target of kinds) {
  test(`a backup restored to an empty ${target}: deployment, webhook and certificate go on working`, async () => {
    const [from, to] = [await isolatedEnv(), await isolatedEnv()];
    const home = mkdtempSync(join(tmpdir(), 'sluice-backup-'));
    const file = join(home, 'monday.backup');
    const secretFile = join(home, 'passphrase');
    writeFileSync(secretFile, 'correct horse battery staple\n');
    const receiver = await Receiver.open(answering(200));
    // The admin token is that of the backup.
    const { SLUICE_ADMIN_TOKEN: _, ...target_ } = to.env;
    const { SLUICE_DATABASE_URL: __, ...onSqlite } = target_;
    const empty = target === 'SQLite' ? onSqlite : target_;
    const { SLUICE_ADMIN_TOKEN: ___, ...source } = from.env;
    rmSync(empty.SLUICE_DATA_DIR!, { recursive: true });
    const services: Service[] = [];
    try {
      const ledger = join(from.dataDir, 'catalogue.state', 'ledger.jsonl');
      mkdirSync(dirname(ledger), { recursive: true });
      writeFileSync(ledger, '{"id":"harbour"}\n');
      services.push(startService(source));
      const url = await services[0]!.url;
      const token = readFileSync(join(from.dataDir, 'admin-token'), 'utf8').trim();
      const ask = (address: string, method: string, path: string, body?: object) =>
        call(address, method, `/v1${path}`, { token, body });
      const { id: project, slug } = (await ask(url, 'POST', '/projects', { name: 'Kept' })).body;
      const E = `/projects/${project}/environments/production`;
      await ask(url, 'PATCH', E, {
        variables: { COLOUR: 'blue' },
        drain_s: 0,
        health_check: { interval_s: 1, healthy_after: 1 },
      });
      const webhook = (await ask(url, 'POST', '/webhooks', { url: receiver.url, events: ['deployment.succeeded'] }))
        .body;
      const env = { SLUICE_API_URL: url, SLUICE_TOKEN: token };
      assert.equal((await cli(['deploy', 'registry.example/shop:1'], env)).code, 0);
      const hostname = `kept-${slug}.test`;
      const domain = (await ask(url, 'POST', `/projects/${project}/domains`, { hostname, environment: 'production' }))
        .body;
      const isActive = async (address: string) =>
        (await ask(address, 'GET', `/projects/${project}/domains/${domain.id}`)).body.state === 'active' || undefined;
      await until('the certificate', () => isActive(url), 30_000);
      const fingerprint = await until(
        'its use',
        () => certificateOf(services[0]!, hostname).catch(() => undefined),
        30_000,
      );

      const taken = await cli(['backup', file, '--passphrase-file', secretFile, '--json'], source);
      assert.equal(taken.code, 0, taken.stderr);
      assert.deepEqual(JSON.parse(taken.stdout).files, ['sluice.db', 'secret.key', 'admin-token', 'ledger.jsonl']);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const bytes = readFileSync(file);
      for (const text of [
        token,
        readFileSync(join(from.dataDir, 'secret.key'), 'utf8').trim(),
        'SQLite format',
        'Kept',
      ])
        assert.ok(!bytes.includes(text), `${text} cannot be read`);
      assert.equal(
        (await cli(['backup', file, '--passphrase-file', secretFile], source)).code,
        2,
        'nothing is overwritten',
      );
      await end(services[0]!);

      writeFileSync(join(home, 'wrong'), 'not the passphrase\n');
      const wrong = await cli(['restore', file, '--passphrase-file', join(home, 'wrong')], empty);
      assert.equal(wrong.code, 1);
      assert.match(wrong.stderr, /The passphrase is not the one of this backup/);
      assert.ok(!existsSync(join(empty.SLUICE_DATA_DIR!, 'sluice.db')), 'nothing is left of it');
      const restored = await cli(['restore', file, '--passphrase-file', secretFile], empty);
      assert.equal(restored.code, 0, restored.stderr);
      const twice = await cli(['restore', file, '--passphrase-file', secretFile], empty);
      assert.equal(twice.code, 1);
      assert.match(twice.stderr, /already/);
      assert.equal(
        readFileSync(join(empty.SLUICE_DATA_DIR!, 'catalogue.state', 'ledger.jsonl'), 'utf8'),
        '{"id":"harbour"}\n',
      );
      const check = await cli(['upgrade', '--check', '--json'], empty);
      assert.deepEqual(JSON.parse(check.stdout).pending, []);

      services.push(startService(empty));
      const there = await services[1]!.url;
      const address = new URL((await ask(there, 'GET', E)).body.url);
      const visit = async () =>
        (await visitPlain(Number(address.port), address.hostname)).body.includes('registry.example/shop:1') ||
        undefined;
      await until('the deployment to serve', visit, 30_000);
      assert.equal(
        await until('its certificate', () => certificateOf(services[1]!, hostname).catch(() => undefined), 30_000),
        fingerprint,
      );
      const before = receiver.arrivals.length;
      const next = { SLUICE_API_URL: there, SLUICE_TOKEN: token };
      assert.equal((await cli(['deploy', 'registry.example/shop:2'], next)).code, 0, 'the token goes on working');
      assert.deepEqual(JSON.parse((await cli(['env', 'variables', '--json'], next)).stdout), ['COLOUR']);
      const arrival = await until('the webhook', async () => receiver.arrivals[before], 30_000);
      assert.equal(arrival.event.data.revision, 'r2');
      assert.ok(await verifySignature(arrival.body, String(arrival.headers['x-service-signature']), webhook.secret));
      await end(services[1]!);
    } finally {
      for (const service of services) service.killAll();
      await receiver.close();
      rmSync(home, { recursive: true });
      await Promise.all([from.clean(), to.clean()]);
    }
  });
}
