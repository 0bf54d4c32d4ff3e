// npm run bench -- start: how long the service takes from the command to where everything answers, what it holds in
// memory when it is idle, and the control process under load.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { installMissing } from '../scripts/packages.ts';
import { childrenOf } from '../test/helpers/children.ts';
import { freePort } from '../test/helpers/free-port.ts';
import { cpuSeconds, median, requestsPerSecond } from './lib/measure.ts';
import { adminToken, api, appEnv, end, proportionalMib, residentMib, startServer, tempDir } from './lib/processes.ts';
import { note, report } from './lib/report.ts';

const rounds = 7;
const workers = 2;
const start = join(import.meta.dirname, '../bin/start.js');

interface Started {
  /** Until the API answers, and until visitors are answered too. */
  readyMs: number;
  allMs: number;
  cpuMs: number;
  supervisorMib: number;
  controlMib: number;
  workerMib: number;
  /** All of them, with each page counted once. */
  togetherMib: number;
}

async function answered(child: ChildProcess, url: string, status: number): Promise<void> {
  const giveUpAt = performance.now() + 60_000;
  const statusOf = () =>
    fetch(url).then(
      (response) => response.status,
      () => 0,
    );
  while ((await statusOf()) !== status) {
    if (performance.now() > giveUpAt || child.exitCode !== null) throw new Error(`${url} does not answer`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The command people run, on a new or a used data directory. */
async function timeStart(dir: string): Promise<Started> {
  const [port, routerPort] = [await freePort(), await freePort()];
  const ports = { SLUICE_PORT: String(port), SLUICE_ROUTER_PORT: String(routerPort) };
  const env = { ...process.env, ...appEnv(dir), ...ports, SLUICE_ROUTER_WORKERS: String(workers) };
  const startedAt = performance.now();
  const child = spawn(process.execPath, [start], { env, stdio: 'ignore' });
  await answered(child, `http://127.0.0.1:${port}/readyz`, 200);
  const readyMs = performance.now() - startedAt;
  await answered(child, `http://127.0.0.1:${routerPort}/`, 404);
  const allMs = performance.now() - startedAt;
  const [control] = childrenOf(child.pid!, 'control.js') as [number];
  const [worker, ...others] = childrenOf(child.pid!, 'router-worker.js') as [number, ...number[]];
  const all = [child.pid!, control, worker, ...others];
  const cpuMs = cpuSeconds(all) * 1000;
  await new Promise((resolve) => setTimeout(resolve, 1500)); // memory is measured once the start has settled
  const started: Started = {
    readyMs,
    allMs,
    cpuMs,
    supervisorMib: residentMib(child.pid!),
    controlMib: residentMib(control),
    workerMib: residentMib(worker),
    togetherMib: all.reduce((sum, pid) => sum + proportionalMib(pid), 0),
  };
  await end(child);
  return started;
}

async function loadedMib(): Promise<number> {
  const app = await startServer('app-server.ts', appEnv(tempDir()));
  const project = await api<{ id: string }>(app, 'POST', '/projects', { name: 'Shop' });
  let highest = 0;
  const timer = setInterval(() => {
    highest = Math.max(highest, residentMib(app.pid));
  }, 100);
  const url = `${app.url}/v1/projects`;
  const luaBody = `'{"name":"Load ' .. n .. '"}'`;
  await Promise.all([
    requestsPerSecond({ url: `${url}/${project.id}`, connections: 64, seconds: 10, token: adminToken }),
    requestsPerSecond({ url, connections: 16, seconds: 10, method: 'POST', luaBody, token: adminToken }),
  ]);
  clearInterval(timer);
  await app.stop();
  return highest;
}

installMissing(['wrk']);
const used = tempDir();
await timeStart(used); // fills the compile cache too, as the first start after an install does
const again: Started[] = [];
const fresh: Started[] = [];
for (let round = 0; round < rounds; round++) {
  fresh.push(await timeStart(tempDir()));
  again.push(await timeStart(used));
}
const of = (what: keyof Started, starts = again) => median(starts.map((one) => one[what]));
const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const mib = (value: number) => `${value.toFixed(0)} MiB`;
report(
  'start until everything answers',
  seconds(of('allMs')),
  '< 1 s',
  of('allMs') < 1000,
  `medians of ${rounds} starts`,
);
note('… on an empty data directory', seconds(of('allMs', fresh)));
note('start until the API is ready', seconds(of('readyMs')));
note('CPU time of a start, all processes', seconds(of('cpuMs')));
const idle = of('controlMib');
report('resident memory of the control process, idle', mib(idle), '< 120 MiB', idle < 120, 'median');
note('… of the supervisor', mib(of('supervisorMib')));
note('… of each router worker', mib(of('workerMib')));
note(`… of all, with ${workers} workers, shared pages counted once`, mib(of('togetherMib')));
note('… of the control process under load, highest', mib(await loadedMib()));
