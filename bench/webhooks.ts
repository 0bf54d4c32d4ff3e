// npm run bench -- webhooks [drain] [latency] [hang]: deliveries a second, and from commit to arrival, beside two queues.
//
// Ten receivers on loopback in one process, the sender in another, and, on PostgreSQL, who commits in a third; the two
// queues make the same signed POSTs as jobs, with the same number under way, their batching and their NOTIFY turned on.
// Whatever else the machine does hits them all: each is measured several times, in turn, and the medians are compared.
import { startPostgres } from '../test/helpers/postgres.ts';
import { median } from './lib/measure.ts';
import { note, report } from './lib/report.ts';
import { type Arena, type Kind, openArena, Receivers } from './webhooks/arena.ts';

const drained = 10_000;
const rounds = 3;
const secondsOfLatency = 6;

interface Contender {
  name: string;
  kind: Kind;
  /** null: SQLite. */
  url: string | null;
}

const own = 'Sluice on PostgreSQL';
const others = ['pg-boss', 'graphile-worker'];
const contenders = (postgres: string): Contender[] => [
  { name: own, kind: 'sluice', url: postgres },
  { name: 'pg-boss', kind: 'pgBoss', url: postgres },
  { name: 'graphile-worker', kind: 'graphile', url: postgres },
  { name: 'Sluice on SQLite', kind: 'sluice', url: null },
];

/** Each once a round, another one first each time. */
async function inTurn<T>(all: Contender[], times: number, measure: (one: Contender) => Promise<T>) {
  const results = new Map<string, T[]>(all.map(({ name }) => [name, []]));
  for (let round = 0; round < times; round++) {
    for (let n = 0; n < all.length; n++) {
      const one = all[(round + n) % all.length]!;
      results.get(one.name)!.push(await measure(one));
    }
  }
  return results;
}

/** A backlog, sent as fast as it goes: deliveries a second between the first arrival and the last. */
async function drain({ kind, url }: Contender, receivers: Receivers): Promise<number> {
  const arena = await openArena(kind, url, receivers, true);
  try {
    await arena.producer.ask({ ask: 'produce', from: 0, count: drained, perSecond: null });
    await arena.begin();
    await receivers.until(drained);
    const at = (await receivers.take()).map(([, time]) => time);
    return (drained - 1) / ((Math.max(...at) - Math.min(...at)) / 1000);
  } finally {
    await arena.close();
  }
}

const percentile = (values: number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!;

interface Waits {
  p50: number;
  p95: number;
  /** Commits a second, as it came out: who cannot commit as fast as wanted has less to send. */
  rate: number;
}

/** From commit to arrival; `others`: of all but what is for the first receiver. */
async function latency(
  arena: Arena,
  receivers: Receivers,
  perSecond: number,
  from: number,
  others: boolean,
  seconds = secondsOfLatency,
): Promise<Waits> {
  const count = perSecond * seconds;
  const { committed } = await arena.producer.ask<{ committed: [number, number][] }>({
    ask: 'produce',
    from,
    count,
    perSecond,
  });
  const expected = committed.filter(([n]) => !others || n % receivers.urls.length !== 0);
  await receivers.until(expected.length).catch(() => {}); // what has not come by then has waited longer than all others
  const arrivals = new Map(await receivers.take());
  const waits = expected.map(([n, at]) => (arrivals.has(n) ? Math.max(0, arrivals.get(n)! - at) : 60_000));
  const at = committed.map(([, time]) => time);
  const rate = ((count - 1) * 1000) / (Math.max(...at) - Math.min(...at));
  return { p50: percentile(waits, 0.5), p95: percentile(waits, 0.95), rate };
}

const ms = (value: number) => (value >= 60_000 ? 'over a minute' : `${value.toFixed(1)} ms`);

async function benchDrain(postgres: string, receivers: Receivers): Promise<void> {
  const results = await inTurn(contenders(postgres), rounds, (one) => drain(one, receivers));
  const rate = (name: string) => median(results.get(name)!);
  const shown = (value: number) => Math.round(value).toLocaleString('en');
  for (const [name, values] of results) {
    const of = `of ${values.map(shown).join(', ')}`;
    const [what, value] = [`deliveries a second, one process: ${name}`, shown(median(values))];
    if (name === own) report(what, value, '≥ 1,000', rate(own) >= 1000, of);
    else note(what, value, of);
  }
  for (const other of others) {
    const ratio = rate(own) / rate(other);
    report(`deliveries a second, Sluice / ${other}`, ratio.toFixed(2), '> 1', ratio > 1, 'on PostgreSQL');
  }
}

async function benchLatency(postgres: string, receivers: Receivers): Promise<void> {
  for (const perSecond of [200, 1000]) {
    const results = await inTurn(contenders(postgres), rounds, async ({ kind, url }) => {
      const arena = await openArena(kind, url, receivers, false);
      try {
        await latency(arena, receivers, 200, 0, false, 3); // warm
        return await latency(arena, receivers, perSecond, 1_000_000, false);
      } finally {
        await arena.close();
      }
    });
    const of = (name: string, key: keyof Waits) => median(results.get(name)!.map((waits) => waits[key]));
    for (const [name, values] of results) {
      const [what, p95] = [`commit to arrival at ${perSecond}/s, p95: ${name}`, of(name, 'p95')];
      const detail =
        `p50 ${ms(of(name, 'p50'))}; p95 of ${values.map(({ p95: each }) => ms(each)).join(', ')}; ` +
        `committed ${values.map(({ rate }) => Math.round(rate)).join(', ')} a second`;
      if (name === own && perSecond === 200) report(what, ms(p95), '< 100 ms', p95 < 100, detail);
      else note(what, ms(p95), detail);
    }
    for (const other of others) {
      const ratio = (key: keyof Waits) => of(own, key) / of(other, key);
      const what = `commit to arrival at ${perSecond}/s, p95, Sluice / ${other}`;
      const detail = `p50 ${ratio('p50').toFixed(2)}`;
      // A queue that commits more slowly than it should has less to send: the two cannot be compared then.
      if (ratio('rate') > 1.1) note(what, 'void', detail);
      else report(what, ratio('p95').toFixed(2), '≤ 1', ratio('p95') <= 1, detail);
    }
  }
}

async function benchHang(postgres: string, receivers: Receivers): Promise<void> {
  for (const { name, kind, url } of contenders(postgres)) {
    const arena = await openArena(kind, url, receivers, false);
    await latency(arena, receivers, 200, 0, false, 3); // warm
    const [without, hanging]: [number[], number[]] = [[], []];
    let from = 1_000_000;
    for (let round = 0; round < (kind === 'sluice' ? rounds : 1); round++) {
      for (const hang of [false, true]) {
        await receivers.hang(hang);
        const { p95 } = await latency(arena, receivers, 200, from, true);
        (hang ? hanging : without).push(p95);
        from += 1_000_000;
      }
    }
    await receivers.hang(false, false);
    const [before, after] = [median(without), median(hanging)];
    const what = `p95 of the others while one receiver in ten hangs / without: ${name}`;
    const [ratio, of] = [(after / before).toFixed(2), `at 200/s; ${ms(after)}, without ${ms(before)}`];
    if (kind === 'sluice') report(what, ratio, '< 1.2', after < before * 1.2, of);
    else note(what, ratio, of);
    await receivers.take();
    await arena.close();
  }
}

const parts = { drain: benchDrain, latency: benchLatency, hang: benchHang };
const chosen = process.argv.slice(3).filter((name) => name in parts) as (keyof typeof parts)[];
const postgres = await startPostgres();
const receivers = await Receivers.open();
try {
  for (const name of chosen.length > 0 ? chosen : (Object.keys(parts) as (keyof typeof parts)[])) {
    await parts[name](postgres.url, receivers);
  }
} finally {
  await receivers.close();
  await postgres.stop();
}
process.exit(0);
