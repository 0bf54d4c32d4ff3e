// npm run bench -- router [carry] [steady] [small] [large] [tls] [handshakes] [share]
//   carry     workers, HAProxy and nginx with the same duties, also by processor time: bench/router/carry.ts
//   steady    latencies while the control plane is in trouble or busy: bench/router/steady.ts
//   small, large, tls, handshakes   the built-in proxy alone, in one process, beside nginx with one worker
//   share     how exact a canary's share is
//
// Proxies stand before the same backend and are loaded in turns by wrk with kept connections. What counts is the ratio: the
// figures themselves say more about the machine.
import { Pool } from 'undici';
import { installMissing } from '../scripts/packages.ts';
import type { Share } from '../src/traffic/data-plane.ts';
import { freePort } from '../test/helpers/free-port.ts';
import { issue } from '../test/helpers/router-certificates.ts';
import { alternate, requestsPerSecond } from './lib/measure.ts';
import { type Served, startServer } from './lib/processes.ts';
import { report } from './lib/report.ts';
import { benchCarry } from './router/carry.ts';
import { type Nginx, startBackend, startNginxProxy } from './router/nginx.ts';
import { tlsRequestsPerSecond } from './router/router-load.ts';
import { benchSteady } from './router/steady.ts';

const seconds = 3;
const rounds = 5;

const share = (revision: number, percent: number, { port }: Nginx): Share => ({
  revision,
  percent,
  targets: [{ instance: `bench-${revision}`, host: '127.0.0.1', port }],
});

const tableOf = (host: string, shares: Share[]): string =>
  JSON.stringify([{ project: 'bench', environment: 'production', hosts: [{ name: host, secure: false }], shares }]);

const startRouter = (...shares: Share[]): Promise<Served> =>
  startServer('../router/router-server.ts', { BENCH_TABLE: tableOf('127.0.0.1', shares) });

const rate = (perSecond: number): string => `${Math.round(perSecond).toLocaleString('en')}/s`;

async function compare(name: string, path: string, connections: number, least: number): Promise<void> {
  const backend = await startBackend('stable');
  const nginx = await startNginxProxy(backend.port);
  const router = await startRouter(share(1, 100, backend));
  const load = (url: string) => () =>
    requestsPerSecond({ url: `${url}${path}`, connections, seconds, token: 'unused-by-backends' });
  const measures = { router: load(router.url), nginx: load(`http://127.0.0.1:${nginx.port}`) };
  await alternate(1, measures); // warm
  const rates = await alternate(rounds, measures);
  const ratio = rates.router / rates.nginx;
  const of = `${rate(rates.router)} of ${rate(rates.nginx)}, ${connections} connections`;
  report(`${name}, built-in / nginx`, ratio.toFixed(2), `≥ ${least}`, ratio >= least, of);
  await Promise.all([router.stop(), nginx.stop(), backend.stop()]);
}

/** Both end TLS with the same certificate, with kept connections or with one for each request. */
async function compareTls(name: string, connections: number, handshakes: boolean, least: number): Promise<void> {
  const issued = await issue('localhost');
  const [ownPort, nginxPort] = [await freePort(), await freePort()];
  const backend = await startBackend('stable');
  const nginx = await startNginxProxy(backend.port, { port: nginxPort, issued });
  const router = await startServer('../router/router-server.ts', {
    BENCH_TABLE: tableOf('localhost', [share(1, 100, backend)]),
    BENCH_CERTIFICATE: JSON.stringify(issued),
    BENCH_TLS_PORT: String(ownPort),
  });
  const load = (port: number) => () =>
    tlsRequestsPerSecond({ url: `https://localhost:${port}/small`, connections, seconds, handshakes });
  const measures = { router: load(ownPort), nginx: load(nginxPort) };
  await alternate(1, measures); // warm
  const rates = await alternate(rounds, measures);
  const ratio = rates.router / rates.nginx;
  const of = `${rate(rates.router)} of ${rate(rates.nginx)}, ${connections} connections`;
  report(`${name}, built-in / nginx`, ratio.toFixed(2), `≥ ${least}`, ratio >= least, of);
  await Promise.all([router.stop(), nginx.stop(), backend.stop()]);
}

async function benchShare(): Promise<void> {
  const [stable, canary] = [await startBackend('stable'), await startBackend('canary')];
  const router = await startRouter(share(1, 90, stable), share(2, 10, canary));
  const pool = new Pool(router.url, { connections: 32 });
  const requests = 10_000;
  const answers = new Map<string, number>();
  const ask = async () => {
    const { body } = await pool.request({ method: 'GET', path: '/small' });
    const name = await body.text();
    answers.set(name, (answers.get(name) ?? 0) + 1);
  };
  for (let asked = 0; asked < requests; asked += 100) await Promise.all(Array.from({ length: 100 }, ask));
  const percent = ((answers.get('canary') ?? 0) / requests) * 100;
  const met = Math.abs(percent - 10) <= 0.1 && answers.get('stable')! + answers.get('canary')! === requests;
  report('requests to a canary at 10 %', `${percent.toFixed(2)} %`, '10 ± 0.1 %', met, `${requests} requests`);
  await pool.close();
  await Promise.all([router.stop(), stable.stop(), canary.stop()]);
}

const parts = {
  carry: benchCarry,
  steady: benchSteady,
  small: () => compare('small bodies', '/small', 64, 0.12),
  large: () => compare('1 MB bodies', '/large', 16, 0.5),
  tls: () => compareTls('small bodies over TLS', 64, false, 0.12),
  handshakes: () => compareTls('handshakes, one request each', 16, true, 0.3),
  share: benchShare,
};
process.setMaxListeners(50); // each server and folder is removed at the exit
installMissing(['wrk', 'nginx', 'haproxy']);
const chosen = process.argv.slice(3).filter((name) => name in parts) as (keyof typeof parts)[];
for (const name of chosen.length > 0 ? chosen : (Object.keys(parts) as (keyof typeof parts)[])) await parts[name]();
