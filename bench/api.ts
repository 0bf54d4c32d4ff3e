// npm run bench -- api [get] [post] [list]: what the platform under every resource costs.
//
// Ratios of things measured side by side, in turns, because absolute figures say more about the machine than about us.
// Servers run in processes of their own on loopback, the load comes from wrk, the access log is on.
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { installMissing } from '../scripts/packages.ts';
import { newEnvironment } from '../src/environments/change-environment.ts';
import { createIds } from '../src/lib/ids.ts';
import { alternate, requestsPerSecond } from './lib/measure.ts';
import { adminToken, api, appEnv, type Served, startServer, tempDir } from './lib/processes.ts';
import { note, report } from './lib/report.ts';

function insertOf(database: DatabaseSync, table: string, row: object): (row: object) => void {
  const names = Object.keys(row);
  const statement = database.prepare(
    `insert into ${table} (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`,
  );
  return (values) => void statement.run(...(Object.values(values) as SQLInputValue[]));
}

/** Fills the database of a stopped service with projects, each with its environment, as fast as SQLite takes them. */
function fillProjects(dataDir: string, count: number): void {
  const database = new DatabaseSync(join(dataDir, 'sluice.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = off; pragma cache_size = -262144');
  const account = database.prepare('select id from account limit 1').get() as { id: string };
  let nowMs = Date.now() - count;
  const ids = createIds({ now: () => nowMs });
  const project = (n: number) => ({
    id: ids('prj'),
    account_id: account.id,
    name: `Project ${n}`,
    slug: `p-${n}`,
    description: null,
    labels: '[]',
    created_at: nowMs,
    updated_at: nowMs,
    version: 1,
  });
  const environment = (projectId: string, n: number) =>
    newEnvironment({ projectId, name: 'production', region: 'local', host: `p-${n}-production` }, nowMs);
  const insertProject = insertOf(database, 'project', project(0));
  const insertEnvironment = insertOf(database, 'environment', environment('', 0));
  database.exec('begin immediate');
  for (let n = 1; n <= count; n++) {
    nowMs++;
    const row = project(n);
    insertProject(row);
    insertEnvironment(environment(row.id, n));
  }
  database.exec('commit; pragma wal_checkpoint(truncate); analyze');
  database.close();
}

/** Commits a second of one SQLite connection with the settings of the service: one row, one transaction, one fsync. */
function rawCommitsPerSecond(dir: string, seconds: number): number {
  const database = new DatabaseSync(join(dir, 'raw.db'));
  database.exec('pragma journal_mode = wal; pragma synchronous = full');
  database.exec(
    'create table if not exists project (id integer primary key, name text not null, created_at int not null)',
  );
  const insert = database.prepare('insert into project (name, created_at) values (?, ?)');
  const endAt = performance.now() + seconds * 1000;
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() < endAt) {
    database.exec('begin immediate');
    insert.run(`Project ${count}`, Date.now());
    database.exec('commit');
    count++;
  }
  const rate = count / ((performance.now() - startedAt) / 1000);
  database.close();
  return rate;
}

interface Project {
  id: string;
}

interface List {
  data: Project[];
  page: { next: string | null };
}

const seconds = 4;
const many = 1_000_000;
const few = 1000;

const startApp = (dataDir: string): Promise<Served> => startServer('app-server.ts', appEnv(dataDir));

const rate = (perSecond: number): string => `${Math.round(perSecond).toLocaleString('en')}/s`;

async function benchGet(): Promise<void> {
  const app = await startApp(tempDir());
  const project = await api<Project>(app, 'POST', '/projects', { name: 'Shop', labels: ['web', 'shop'] });
  const bare = await startServer('bare-server.ts', { BENCH_JSON: JSON.stringify(project) });
  const load = (server: Served) => () =>
    requestsPerSecond({ url: `${server.url}/v1/projects/${project.id}`, connections: 16, seconds, token: adminToken });
  await alternate(1, { app: load(app), bare: load(bare) }); // warm
  const rates = await alternate(5, { app: load(app), bare: load(bare) });
  const ratio = rates.app / rates.bare;
  const of = `${rate(rates.app)} of ${rate(rates.bare)}`;
  report('authenticated GET of a project / a bare Fastify route', ratio.toFixed(2), '≥ 0.55', ratio >= 0.55, of);
  await Promise.all([app.stop(), bare.stop()]);
}

async function benchPost(): Promise<void> {
  const dir = tempDir();
  const app = await startApp(dir);
  let run = 0;
  const load = (connections: number) => () =>
    requestsPerSecond({
      url: `${app.url}/v1/projects`,
      connections,
      seconds,
      method: 'POST',
      luaBody: `'{"name":"Load ${run++}x' .. n .. '"}'`,
      token: adminToken,
    });
  const measures = { raw: () => rawCommitsPerSecond(dir, seconds), sixteen: load(16), one: load(1) };
  await alternate(1, measures); // warm
  const rates = await alternate(5, measures);
  const of = (perSecond: number) => `${rate(perSecond)} of ${rate(rates.raw)}`;
  const ratio = rates.sixteen / rates.raw;
  const what = 'POST of a project, 16 connections / raw SQLite commits';
  report(what, ratio.toFixed(2), '≥ 0.35', ratio >= 0.35, of(rates.sixteen));
  const alone = rates.one / rates.raw;
  note('POST of a project, 1 connection / raw SQLite commits', alone.toFixed(2), of(rates.one));
  await app.stop();
}

/** Follows `page.next` to the last full page and gives its cursor. */
async function deepestCursor(app: Served): Promise<string> {
  let cursor = '';
  for (;;) {
    const { page } = await api<List>(app, 'GET', `/projects?limit=100${cursor && `&cursor=${cursor}`}`);
    if (page.next === null) return cursor;
    cursor = page.next;
  }
}

async function startFilled(count: number): Promise<Served> {
  const dir = tempDir();
  await (await startApp(dir)).stop();
  fillProjects(dir, count);
  return startApp(dir);
}

async function benchList(): Promise<void> {
  const [big, small] = [await startFilled(many), await startFilled(few)];
  const load = (app: Served, query: string) => () =>
    requestsPerSecond({ url: `${app.url}/v1/projects${query}`, connections: 16, seconds, token: adminToken });
  const [bigEnd, smallEnd] = [await deepestCursor(big), await deepestCursor(small)];
  const measures = {
    firstOfMany: load(big, ''),
    firstOfFew: load(small, ''),
    lastOfMany: load(big, `?cursor=${bigEnd}`),
    lastOfFew: load(small, `?cursor=${smallEnd}`),
  };
  await alternate(1, measures); // warm
  const rates = await alternate(5, measures);
  const sizes = `${many.toLocaleString('en')} projects / ${few.toLocaleString('en')}`;
  const compare = (name: string, slow: number, fast: number) => {
    const ratio = fast / slow;
    const of = `at ${rate(slow)} and ${rate(fast)}`;
    report(`time of the ${name} of a list, ${sizes}`, ratio.toFixed(2), '≤ 1.2', ratio <= 1.2, of);
  };
  compare('first page', rates.firstOfMany, rates.firstOfFew);
  compare('deepest page', rates.lastOfMany, rates.lastOfFew);
  await Promise.all([big.stop(), small.stop()]);
}

const parts = { get: benchGet, post: benchPost, list: benchList };
installMissing(['wrk']);
const chosen = process.argv.slice(3).filter((name) => name in parts) as (keyof typeof parts)[];
for (const name of chosen.length > 0 ? chosen : (Object.keys(parts) as (keyof typeof parts)[])) await parts[name]();
