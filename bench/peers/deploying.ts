// Sluice as `npm start` runs it, with one project whose instances are stand-ins.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { haproxyFilesOf } from '../../src/traffic/haproxy/haproxy-files.ts';
import { stopMaster } from '../../src/traffic/haproxy/haproxy-process.ts';
import { adminToken } from '../../test/helpers/app.ts';
import { freePort } from '../../test/helpers/free-port.ts';
import { Shop } from '../../test/helpers/shop.ts';
import { until } from '../../test/helpers/wait.ts';
import { appEnv, end, tempDir } from '../lib/processes.ts';

const start = join(import.meta.dirname, '../../bin/start.js');

export interface Sluice {
  name: string;
  port: number;
  host: string;
  /** Resolves when the deployment has succeeded and the old revision has ended. */
  deploy(version: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startSluice(plane: 'builtin' | 'haproxy'): Promise<Sluice> {
  const [dir, api, port, tlsPort] = [tempDir(), await freePort(), await freePort(), await freePort()];
  const env = {
    ...{
      ...process.env,
      ...appEnv(dir),
      SLUICE_DATA_PLANE: plane,
      SLUICE_PORT: String(api),
      SLUICE_ADMIN_TOKEN: adminToken,
    },
    ...{ SLUICE_ROUTER_PORT: String(port), SLUICE_ROUTER_TLS_PORT: String(tlsPort) },
  };
  const child = spawn(process.execPath, [start], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  process.on('exit', () => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${api}`;
  const isReady = () =>
    fetch(`${url}/readyz`)
      .then(({ ok }) => ok || undefined)
      .catch(() => undefined);
  await until('Sluice to be ready', isReady, 30_000);
  const shop = await Shop.open(url, { drain_s: 1 });
  await shop.released('registry.example/shop:1');
  await until('the first visit', async () => (await shop.visit()).status === 200 || undefined);
  return {
    name: plane === 'haproxy' ? 'Sluice, HAProxy' : 'Sluice, built-in',
    port,
    host: shop.host,
    async deploy(version) {
      await shop.released(`registry.example/shop:${version}`);
    },
    async stop() {
      await end(child);
      if (plane === 'haproxy') await stopMaster(haproxyFilesOf(dir), 0);
    },
  };
}
