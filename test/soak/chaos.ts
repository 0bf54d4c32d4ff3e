// npm run soak -- chaos [--minutes N] [--seed N] [--plane P] [--database D]: services on a real Docker Engine, of which everything
// is killed, stopped and restarted at random, while projects are released and visited. See docs/soak.md.
import { parseArgs } from 'node:util';
import { until } from '../helpers/wait.ts';
import * as checks from './checks.ts';
import {
  ask,
  countUnfinishedDeliveries,
  hurryDeliveries,
  listContainers,
  listInstanceRows,
  readFacts,
  type Subscription,
} from './facts.ts';
import { Faults } from './faults.ts';
import { Ledger } from './ledger.ts';
import { closingLine, type Outcome } from './outcome.ts';
import { planFaults } from './plan.ts';
import { seeded } from './random.ts';
import type { DatabaseKind, Facts, Plane } from './records.ts';
import { createProjects, release } from './releases.ts';
import { allServed, openSites, type SoakedSite, subscribe } from './sites.ts';
import { Visitors } from './visitors.ts';
import { forget, type Installation, startWorld, type World } from './world.ts';

const planes: Plane[] = ['builtin', 'haproxy'];
const databases: DatabaseKind[] = ['postgres', 'sqlite'];
const visitorsPerRouter = 6;
const projectEveryMs = 3000;
const calmWithinMs = 300_000;
const shownPerCheck = 10;

const startedAt = Date.now();
const say = (line: string) => console.log(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(7)} s  ${line}`);

/** Resolves with the exit code. */
export async function chaos(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string' },
      seed: { type: 'string' },
      plane: { type: 'string', multiple: true, default: planes },
      database: { type: 'string', multiple: true, default: databases },
    },
  });
  const minutes = Number(values.minutes ?? 30);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  if (!(minutes > 0) || !Number.isInteger(seed))
    throw new Error('--minutes takes a number above 0, --seed a whole number');
  const wanted = planes.filter((plane) => values.plane.includes(plane));
  const chosen = databases
    .filter((database) => values.database.includes(database))
    .flatMap((database) => installationsOf(wanted, database));
  if (chosen.length === 0)
    throw new Error(`--plane takes ${planes.join(' or ')}, --database ${databases.join(' or ')}`);
  let violations = 0;
  for (const installation of chosen) violations += await chaosIn(installation, seed, minutes);
  return violations > 0 ? 1 : 0;
}

/** Two services share a PostgreSQL; a file is for one. */
function installationsOf(wanted: Plane[], database: DatabaseKind): Installation[] {
  const [first, second = first] = wanted;
  if (first === undefined) return [];
  return database === 'postgres'
    ? [{ database, planes: [first, second!] }]
    : wanted.map((plane) => ({ database, planes: [plane] }));
}

/** Gives the number of violations. */
async function chaosIn(installation: Installation, seed: number, minutes: number): Promise<number> {
  const name = `${installation.planes.join(' and ')} on ${installation.database}`;
  console.log(`chaos for ${minutes} minutes, seed ${seed}: ${name}`);
  const world = await startWorld(installation);
  say(`logs: ${world.folder}`);
  let violations: number;
  try {
    const outcome = await run(world, seed, minutes, installation.database);
    violations = report(outcome);
    console.log(closingLine({ ...outcome, name, minutes, seed, violations }));
  } finally {
    await world.stop();
  }
  if (violations === 0) forget(world);
  return violations;
}

async function run(world: World, seed: number, minutes: number, database: DatabaseKind): Promise<Outcome> {
  const ledger = new Ledger(world.services.map(({ url }) => url));
  const subscriptions = await subscribe(world, ledger);
  const sites = await openSites(world, ledger);
  await allServed(world.services, sites);
  say('every site is served');

  let isOver = false;
  const end = () => {
    isOver = true;
  };
  process.once('SIGINT', end);
  const trouble: string[] = [];
  const noting = (work: Promise<void>) => work.catch((error) => void trouble.push(String(error)));
  const visitors = new Visitors(world.services, sites, visitorsPerRouter, seeded(seed, 1));
  const users = [
    ...sites.map((site, i) => noting(release(ledger, site, seeded(seed, 2 + i), () => isOver))),
    noting(createProjects(ledger, projectEveryMs, () => isOver)),
  ];
  const faults = new Faults(world, () => allServed(world.services, sites), say);
  const timer = setTimeout(end, minutes * 60_000);
  await noting(faults.run(planFaults(seed, minutes, database), () => isOver));
  clearTimeout(timer);
  end();
  say('calm');
  await Promise.all(users);
  await noting(calm(world, sites));
  await visitors.stop();
  return { ledger, faults, visitors, trouble, facts: await readFacts(world, subscriptions satisfies Subscription[]) };
}

/** Resolves when nothing is on its way any more. */
async function calm(world: World, sites: SoakedSite[]): Promise<void> {
  await Promise.all(world.services.map(({ process }) => process.ready()));
  const unfinished = 'select id from deployment where finished_at is null';
  await until('every deployment to end', async () => (await ask(world, unfinished)).length === 0, calmWithinMs, 1000);
  say('every deployment has ended');
  const delivered = async () => {
    await hurryDeliveries(world);
    return (await countUnfinishedDeliveries(world)) === 0;
  };
  await until('every delivery', delivered, calmWithinMs, 2000);
  say('every delivery has arrived');
  const settled = async () => {
    const seen = { instanceRows: await listInstanceRows(world), containers: await listContainers(world) };
    return checks.orphans(seen as Facts).length === 0 && seen.instanceRows.every(({ state }) => state === 'healthy');
  };
  await until('as many containers as rows', settled, calmWithinMs, 1000);
  await allServed(world.services, sites);
  say('settled');
}

/** Prints what does not hold; gives how much that is. */
function report({ ledger, faults, visitors, trouble, facts }: Outcome): number {
  const all = {
    'did not happen': trouble,
    'visits that failed for no reason': checks.failedForNoReason(visitors.failed, faults.records),
    'lost acknowledgements': checks.lost(ledger.acknowledged, facts),
    'carried out twice': checks.doubled(ledger.keys, facts),
    'aborted in vain': checks.abortedInVain(ledger.acknowledged, facts),
    'deployments without one end': checks.withoutOneEnd(facts),
    'sequences with gaps': checks.withGaps(facts),
    'not delivered': checks.notDelivered(facts),
    orphans: checks.orphans(facts),
    'wrong shares': checks.wrongShares(facts),
  };
  for (const [name, found] of Object.entries(all)) {
    if (found.length === 0) continue;
    console.log(`VIOLATION, ${name}: ${found.length}`);
    for (const line of found.slice(0, shownPerCheck)) console.log(`  ${line}`);
  }
  return Object.values(all).flat().length;
}
