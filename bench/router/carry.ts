// Requests a second, and a second of processor time: the built-in proxy with one and two workers, HAProxy, and nginx with
// the same duties, in turns. The last figure says more: what they get done in a second depends on what else the machine
// does, here also on wrk and the backend.
import { cpuSeconds, median } from '../lib/measure.ts';
import { note, report } from '../lib/report.ts';
import { startBackend, startNginxRouter } from './nginx.ts';
import { hostOf, type Installation, openInstallation, type Router } from './router-installation.ts';
import { loadHost } from './router-load.ts';

/** `BENCH_ROUNDS=1` to try it out. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 7);
const seconds = 3;
const connections = 64;
const environments = 1000;

interface Contender {
  port: number;
  carriers(): number[];
  control?: () => number;
  stop(): Promise<void>;
}

interface Round {
  perSecond: number;
  perCpuSecond: number;
  /** Processor time of the control process for each of the carriers'. */
  beside: number;
}

async function measure({ port, carriers, control }: Contender): Promise<Round> {
  const [pids, others] = [carriers(), control ? [control()] : []];
  const before = [cpuSeconds(pids), cpuSeconds(others)] as const;
  const { requests, perSecond } = await loadHost({ port, host: hostOf(0), connections, seconds });
  const used = cpuSeconds(pids) - before[0];
  return { perSecond, perCpuSecond: requests / used, beside: (cpuSeconds(others) - before[1]) / used };
}

async function contendersOf(installation: Installation, backendPort: number): Promise<Record<string, Contender>> {
  const hosts = Array.from({ length: environments }, (_, n) => hostOf(n));
  const nginx = await startNginxRouter(hosts, backendPort, 2);
  const routers: Record<string, Router> = {
    'built-in, 1 worker': await installation.startRouter({ workers: 1 }),
    'built-in, 2 workers': await installation.startRouter({ workers: 2 }),
    'HAProxy, 2 threads': await installation.startRouter({ haproxy: true, workers: 2 }),
  };
  return { ...routers, 'nginx, 2 workers': { ...nginx, carriers: nginx.workers } };
}

export async function benchCarry(): Promise<void> {
  const installation = await openInstallation();
  const backend = await startBackend('stable');
  await installation.fill(environments, backend.port);
  const contenders = await contendersOf(installation, backend.port);
  const measured = new Map<string, Round[]>(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const [name, contender] of Object.entries(contenders)) {
      const result = await measure(contender);
      if (round > 0) measured.get(name)!.push(result); // the first one warms up
    }
  }
  const of = (name: string, what: keyof Round) => median(measured.get(name)!.map((one) => one[what]));
  const whole = (value: number) => Math.round(value).toLocaleString('en');
  for (const name of measured.keys()) {
    const beside = of(name, 'beside');
    const control = beside > 0 ? `, and ${Math.round(beside * 100)} % of that beside it for the control process` : '';
    note(name, `${whole(of(name, 'perSecond'))}/s`, `${whole(of(name, 'perCpuSecond'))} a second of CPU${control}`);
  }
  const ratio = (what: keyof Round, one: string, other: string) => of(one, what) / of(other, what);
  const [one, two, haproxy, nginx] = [...measured.keys()] as [string, string, string, string];
  const compare = (name: string, value: number, least: number, how: string) =>
    report(name, value.toFixed(2), `≥ ${least}`, value >= least, `${how}, median of ${rounds} rounds`);
  const cpus = 'a second of CPU';
  compare(
    'requests per CPU second, HAProxy / nginx with the same rules',
    ratio('perCpuSecond', haproxy, nginx),
    0.65,
    cpus,
  );
  compare(
    'requests per CPU second, built-in / nginx with the same rules',
    ratio('perCpuSecond', one, nginx),
    0.4,
    cpus,
  );
  compare('requests a second, built-in with two workers / one', ratio('perSecond', two, one), 1.8, 'requests a second');
  note('requests per CPU second, built-in with two workers / one', ratio('perCpuSecond', two, one).toFixed(2));
  for (const contender of Object.values(contenders)) await contender.stop();
  await backend.stop();
  await installation.stop();
}
