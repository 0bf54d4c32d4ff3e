// A real Alertmanager (Debian `prometheus-alertmanager`) with a folder and a port of its own, alone, that tells a webhook
// at once; and what its messages look like.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onPath } from '../../scripts/packages.ts';
import { freePort } from './free-port.ts';
import { until } from './wait.ts';

const program = 'prometheus-alertmanager';

/** Why there is none here to test with, or false. For `{ skip: alertmanagerMissing }`. */
export const alertmanagerMissing: string | false = onPath(program) ? false : `${program} not installed`;

export interface TestAlertmanager {
  /** As Prometheus posts them. */
  post(alerts: object[]): Promise<void>;
  /** What it said, for when something goes wrong. */
  output(): string;
  stop(): Promise<void>;
}

/** None outlives the test that started it, however that ends. */
const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

export async function startAlertmanager(webhook: { url: string; token: string }): Promise<TestAlertmanager> {
  const home = mkdtempSync(join(tmpdir(), 'sluice-alertmanager-'));
  const config = {
    route: {
      receiver: 'sluice',
      group_by: ['...'],
      group_wait: '0s',
      group_interval: '1s',
      repeat_interval: '2s',
    },
    receivers: [
      {
        name: 'sluice',
        webhook_configs: [
          {
            url: webhook.url,
            send_resolved: true,
            http_config: { authorization: { type: 'Bearer', credentials: webhook.token } },
          },
        ],
      },
    ],
  };
  const file = join(home, 'alertmanager.yml');
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const at = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    program,
    [
      `--config.file=${file}`,
      `--storage.path=${join(home, 'data')}`,
      `--web.listen-address=${at}`,
      '--cluster.listen-address=',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  children.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const exited = once(child, 'exit').then(() => children.delete(child));
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    rmSync(home, { recursive: true, force: true });
  };
  const ready = async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended:\n${output}`);
    const answer = await fetch(`http://${at}/-/ready`).catch(() => null);
    return answer?.ok || undefined;
  };
  await until('Alertmanager to be ready', ready).catch(async (error) => {
    await stop();
    throw error;
  });
  return {
    async post(alerts) {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`http://${at}/api/v2/alerts`, {
        method: 'POST',
        headers,
        body: JSON.stringify(alerts),
      });
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    },
    output: () => output,
    stop,
  };
}

/** A message as Alertmanager sends it. */
export const alertmanagerMessage = (...alerts: object[]) => ({
  version: '4',
  groupKey: '{}:{}',
  status: 'firing',
  receiver: 'sluice',
  truncatedAlerts: 0,
  alerts: alerts.map((alert) => ({
    status: 'firing',
    labels: { alertname: 'DiskFull' },
    annotations: {},
    startsAt: '2026-11-15T08:00:00.000Z',
    endsAt: '0001-01-01T00:00:00Z',
    generatorURL: 'http://prometheus/graph',
    fingerprint: 'a1',
    ...alert,
  })),
});
