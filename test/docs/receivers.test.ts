// The receivers of docs/receivers.md, as they stand there: genuine, tampered, old and repeated deliveries, signed by the
// reference implementation of Standard Webhooks.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { onPath } from '../../scripts/packages.ts';
import { freePort } from '../helpers/free-port.ts';
import { until } from '../helpers/wait.ts';

const page = readFileSync('docs/receivers.md', 'utf8');
/** The first block of code below a heading. */
const programOf = (heading: string): string => /^```\w+\n(.*?)^```/ms.exec(page.split(`\n## ${heading}\n`)[1]!)![1]!;

const newSecret = () => `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')}`;
const secret = newSecret();

interface Receiver {
  file: string;
  start: (folder: string, port: number) => [program: string, ...args: string[]];
  path: string;
}

const receivers: Record<string, Receiver> = {
  Node: { file: 'receiver.mjs', start: () => [process.execPath, 'receiver.mjs'], path: '/' },
  Python: { file: 'receiver.py', start: () => ['python3', 'receiver.py'], path: '/' },
  Shell: {
    file: 'cgi-bin/sluice',
    start: (folder, port) => ['busybox', 'httpd', '-f', '-p', `127.0.0.1:${port}`, '-h', folder],
    path: '/cgi-bin/sluice',
  },
};

/** Tried where their language is installed, which the suite does not do. Go takes a minute to compile its library once. */
const others: Record<string, Receiver> = {
  Go: {
    file: 'receiver.go',
    start: () => ['sh', '-c', 'go build -o receiver receiver.go && exec ./receiver'],
    path: '/',
  },
  Ruby: {
    file: 'config.ru',
    start: (_, port) => ['rackup', '--quiet', '--host', '127.0.0.1', '--port', String(port)],
    path: '/',
  },
  PHP: { file: 'receiver.php', start: (_, port) => ['php', '-S', `127.0.0.1:${port}`, 'receiver.php'], path: '/' },
};
const languages: Record<string, string> = { Go: 'go', Ruby: 'rackup', PHP: 'php' };
for (const [heading, receiver] of Object.entries(others)) {
  if (onPath(languages[heading]!)) receivers[heading] = receiver;
}

interface Delivery {
  id: string;
  body: string;
  at?: Date;
  secrets?: string[];
}

async function deliver(url: string, { id, body, at = new Date(), secrets = [secret] }: Delivery, sentBody = body) {
  const response = await fetch(url, {
    method: 'POST',
    body: sentBody,
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': secrets.map((one) => new Webhook(one).sign(id, at, body)).join(' '),
    },
  });
  await response.arrayBuffer();
  return response.status;
}

for (const [heading, { file, start, path }] of Object.entries(receivers)) {
  test(`${heading}: takes what is genuine, once, and nothing else`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-receiver-'));
    mkdirSync(join(folder, 'cgi-bin'));
    writeFileSync(join(folder, file), programOf(heading));
    chmodSync(join(folder, file), 0o755);
    const port = await freePort();
    const [program, ...args] = start(folder, port);
    const seen = join(folder, 'seen');
    const env = {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      WEBHOOK_SECRET: secret,
      PORT: String(port),
      SEEN_DIR: seen,
    };
    const child: ChildProcess = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on('data', (chunk) => {
        printed += chunk;
      });
    }
    try {
      const url = `http://127.0.0.1:${port}${path}`;
      const event = (id: string) => JSON.stringify({ id, type: 'deployment.succeeded', data: { note: 'Grüße' } });
      const good = { id: 'evt_1', body: event('evt_1') };
      await until('an answer', () => deliver(url, { ...good, secrets: [newSecret()] }).catch(() => null), 180_000);
      assert.equal(await deliver(url, good), 204, 'genuine');
      assert.equal(await deliver(url, good), 204, 'the same once more');
      const other = { id: 'evt_2', body: event('evt_2') };
      assert.equal(await deliver(url, other, other.body.replace('succeeded', 'failed')), 401, 'another body');
      assert.equal(await deliver(url, { ...other, secrets: [newSecret()] }), 401, 'another secret');
      assert.equal(await deliver(url, { ...other, secrets: [] }), 401, 'no signature');
      assert.equal(await deliver(url, { ...other, at: new Date(Date.now() - 301_000) }), 401, 'replayed later');
      assert.equal(await deliver(url, { ...other, at: new Date(Date.now() + 310_000) }), 401, 'of the future');
      assert.equal(await deliver(url, { id: '../evt', body: event('evt_3') }), 401, 'an id that is a path');
      assert.equal(await deliver(url, { ...other, secrets: [newSecret(), secret] }), 204, 'while a secret is rotated');
      const worked = () => (heading === 'Shell' ? readFileSync(`${seen}.log`, 'utf8') : printed);
      await until('the second event', () => worked().includes('evt_2'));
      assert.deepEqual(worked().match(/evt_\d/g), ['evt_1', 'evt_2']);
    } finally {
      child.kill();
      await once(child, 'exit');
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
