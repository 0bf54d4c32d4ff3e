// The service as a process that only routes: the environment at `host` leads to instances which the test runs itself, so
// that they can do what the stand-in's cannot.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Db } from '../../src/db/database.ts';
import type { Target } from '../../src/traffic/data-plane.ts';
import { childrenOf } from './children.ts';
import { freePort } from './free-port.ts';
import { envOf, routeTo, seedEnvironment } from './router-control.ts';
import { main, type Service, startService } from './service.ts';

export interface RoutedService {
  db: Db;
  dataDir: string;
  ports: { http: number; tls: number };
  service: Service;
  /** Process ids of the workers that run now. */
  workers(): number[];
  control(): number[];
  /** Starts it once more, after it has ended. */
  startAgain(): void;
}

/** Two workers; all of it ends with the test file. */
export async function startRoutedService(
  targets: Target[],
  {
    entry = main,
    program = process.execPath,
    databaseUrl = null,
    dataDir = mkdtempSync(join(tmpdir(), 'sluice-routed-')),
    more = {},
  }: {
    entry?: string;
    program?: string;
    databaseUrl?: string | null;
    dataDir?: string;
    more?: Record<string, string>;
  } = {},
): Promise<RoutedService> {
  const place = { dataDir, secretKey: Buffer.alloc(32, 9) };
  const { db } = await seedEnvironment(place, databaseUrl);
  await routeTo(db, 1, targets);
  const ports = { http: await freePort(), tls: await freePort() };
  const env = {
    ...envOf(place, databaseUrl),
    SLUICE_ROLES: 'router',
    SLUICE_DATA_PLANE: 'builtin',
    SLUICE_ROUTER_WORKERS: '2',
    SLUICE_ROUTER_PORT: String(ports.http),
    SLUICE_ROUTER_TLS_PORT: String(ports.tls),
    SLUICE_LOG_LEVEL: 'info',
    ...more,
  };
  const routed: RoutedService = {
    db,
    dataDir,
    ports,
    service: startService(env, entry, program),
    workers: () => childrenOf(routed.service.child.pid!, 'router-worker.js'),
    control: () => childrenOf(routed.service.child.pid!, 'control.js'),
    startAgain() {
      routed.service = startService(env, entry, program);
      started.push(routed.service);
    },
  };
  /** What one of them left behind when it was killed ends here, too. */
  const started = [routed.service];
  after(async () => {
    for (const service of started) {
      service.killAll();
      await service.exited;
    }
    rmSync(dataDir, { recursive: true, force: true });
  });
  await routed.service.url;
  return routed;
}
