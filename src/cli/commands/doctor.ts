// sluice doctor: what works on this machine, with these settings. The checks change nothing: no database is created or
// migrated, no container started.
import { accessSync, constants, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { addressOf, type Config, readConfig } from '../../config.ts';
import { type growing, rowsQuery, sizeQuery } from '../../db/database-size.ts';
import { StartError } from '../../lib/start-error.ts';
import { oldestNode } from '../../version.ts';
import { clientFor, findService } from '../connect.ts';
import { type Command, verb } from '../frame/command.ts';
import { CliError, exit, type Io } from '../io.ts';
import type { Colour } from '../terminal/output.ts';
import { pad } from '../terminal/table.ts';

type Level = 'ok' | 'note' | 'problem';

/** One line of the report. */
interface Finding {
  level: Level;
  what: string;
  found: string;
  /** What to do about it. */
  todo?: string;
}

const ok = (what: string, found: string): Finding => ({ level: 'ok', what, found });
const note = (what: string, found: string, todo: string): Finding => ({ level: 'note', what, found, todo });
const problem = (what: string, found: string, todo: string): Finding => ({
  level: 'problem',
  what,
  found,
  todo,
});

const colours: Record<Level, Colour> = { ok: 'green', note: 'yellow', problem: 'red' };

export const doctor: Command = {
  verbs: {
    '': verb({
      about: 'check the settings and this machine, and say what to fix',
      async run({ io, out }) {
        const findings: Finding[] = [];
        for await (const finding of runChecks(io)) {
          findings.push(finding);
          if (out.json) continue;
          const mark = out.paint(colours[finding.level], pad(finding.level, 7));
          out.line(`${mark}  ${pad(finding.what, 14)}  ${finding.found}`);
          if (finding.todo) out.line(`${' '.repeat(25)}→ ${finding.todo}`);
        }
        const problems = findings.filter(({ level }) => level === 'problem').length;
        out.result({ ok: problems === 0, findings }, () => {
          out.line();
          out.line(problems === 0 ? 'All that is needed works.' : `${problems} to mend.`);
        });
        return problems === 0 ? exit.done : exit.failed;
      },
    }),
  },
  notes: 'ok: works. note: worth knowing. problem: something that is needed is broken (exit code 1).',
  examples: ['sluice doctor', 'sluice doctor --json'],
};

const showMegabytes = (bytes: number): string => `${Math.round(bytes / 1_000_000)} MB`;

const messageOf = (error: unknown): string => (error as Error).message.split('\n')[0]!;

async function* runChecks(io: Io): AsyncGenerator<Finding> {
  yield checkNode(process.versions.node);
  const config = readSettings(io);
  if (Array.isArray(config)) yield* config;
  else {
    yield ok('settings', 'as the service would take them');
    yield checkDataDir(config.dataDir);
    yield* await checkDatabase(config);
    const remembered = await readRememberedEngines(config);
    for (const region of config.regions) yield* await checkRegion(config, region, remembered.get(region.name) ?? null);
    yield* await checkSingleInstances(config);
    yield await checkFfmpeg(config);
    yield* checkPorts(config);
  }
  yield await checkApi(io);
}

function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split('.').map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return ok('Node.js', version);
  return problem('Node.js', version, `install ${oldestNode} or newer, or run npm ci, which brings one`);
}

function readSettings(io: Io): Config | Finding[] {
  try {
    return readConfig(io.env, false);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.lines.map((line) => problem('settings', line, 'see docs/settings.md'));
  }
}

function checkDataDir(dir: string): Finding {
  let nearest = dir;
  while (!existsSync(nearest)) nearest = dirname(nearest);
  try {
    accessSync(nearest, constants.W_OK | constants.X_OK);
    return ok('data directory', nearest === dir ? `${dir} can be written` : `${dir} can be made`);
  } catch {
    return problem(
      'data directory',
      `${nearest} cannot be written`,
      'change its owner, or choose another SLUICE_DATA_DIR',
    );
  }
}

async function checkRegion(
  config: Config,
  { name, engine: setting }: Config['regions'][number],
  remembered: string | null,
): Promise<Finding[]> {
  const what = `region ${name}`;
  const { decideEngine, openEngine } = await import('../../engines/choose-engine.ts');
  const { choice, why } = await decideEngine(setting, remembered);
  try {
    const engine = await openEngine(name, choice, { ...config, installation: 'doctor', standinDir: null });
    let away: string[];
    let images: Finding[] = [];
    try {
      await engine.probe();
      const pulled = await engine.countImages?.();
      if (pulled) images = [ok(`images ${name}`, `${pulled.images} pulled by Sluice, ${showMegabytes(pulled.bytes)}`)];
      away = (engine.hosts?.() ?? []).flatMap((host) => (host.available ? [] : [host.name]));
    } finally {
      await engine.close();
    }
    if (away.length > 0)
      return [problem(what, `${why}: ${away.join(', ')} does not answer`, 'start Docker there'), ...images];
    if (choice.kind !== 'standin' || setting.kind === 'standin') return [ok(what, why), ...images];
    const todo = remembered === null ? 'start Docker to run containers' : 'name docker: in SLUICE_REGIONS to change it';
    return [note(what, why, todo)];
  } catch (error) {
    const found = error instanceof StartError ? error.lines.join(' ') : messageOf(error);
    return [problem(what, `${why}: ${found}`, 'start the engine, or name another in SLUICE_REGIONS')];
  }
}

async function checkFfmpeg(config: Config): Promise<Finding> {
  const { findFfmpeg } = await import('../../catalogue/media/ffmpeg.ts');
  try {
    const { path, version } = await findFfmpeg(config.ffmpeg ?? undefined, config.searchPath ?? undefined);
    return ok('ffmpeg', `${version} (${path})`);
  } catch (error) {
    return note('ffmpeg', messageOf(error), 'only the catalogue needs it');
  }
}

function isFree(host: string, port: number): Promise<true | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen(port, host, () => server.close(() => resolve(true)));
  });
}

/** Recognises the API and the router by the request id in their responses. */
async function isSluice(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/v1/openapi.json`, { method: 'HEAD', signal: AbortSignal.timeout(3000) });
    return response.headers.get('x-request-id')?.startsWith('req_') ?? false;
  } catch {
    return false;
  }
}

type Port = [what: string, port: number, setting: string];

async function* checkPorts({ host, port, roles, routerPort, routerTlsPort }: Config): AsyncGenerator<Finding> {
  const runs = port !== 0 && (await isSluice(addressOf(host, port)));
  yield checkPort(['port', port, 'SLUICE_PORT'], host, runs ? 'taken by a Sluice that answers' : null);
  // Those of routers elsewhere, which visitors reach.
  if (!roles.includes('router')) return;
  const routes = routerPort !== 0 && (await isSluice(addressOf(host, routerPort)));
  yield checkPort(['router port', routerPort, 'SLUICE_ROUTER_PORT'], host, routes ? 'taken by its router' : null);
  const tls = routes ? 'taken, by its router as it seems' : null;
  yield checkPort(['router TLS', routerTlsPort, 'SLUICE_ROUTER_TLS_PORT'], host, tls);
}

/** `taken`: who has the port, where that is fine. */
async function checkPort([what, port, setting]: Port, host: string, taken: string | null): Promise<Finding> {
  if (port === 0) return ok(what, 'any free one');
  const free = await isFree(host, port);
  if (free === true) return ok(what, `${port} is free`);
  if (free.code !== 'EADDRINUSE') return problem(what, messageOf(free), `choose another ${setting}`);
  if (taken !== null) return ok(what, `${port} is ${taken}`);
  return problem(what, `${port} is taken by another program`, `stop it, or choose another ${setting}`);
}

async function checkApi(io: Io): Promise<Finding> {
  let found: ReturnType<typeof findService>;
  try {
    found = findService(io);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return (error.exitCode === exit.notAllowed ? note : problem)('API', error.message, error.advice.join(' '));
  }
  try {
    const sluice = await clientFor(found);
    const { name, scopes } = await sluice.token.get();
    return ok('API', `${found.url} answers; token ${name} (${scopes.join(' ')}), found by ${found.from}`);
  } catch (error) {
    const { status = 0 } = error as { status?: number };
    const where = `${found.url}, found by ${found.from}: ${messageOf(error)}`;
    if (status === 401) return problem('API', where, 'log in with a valid token: sluice login');
    const local = found.from.startsWith('the data directory');
    return (local ? note : problem)('API', where, local ? 'start the service: sluice serve' : 'check the address');
  }
}

const databaseLabel = 'database';
const versionQuery = 'select max(version) as version from migration';

async function compareVersions(found: string, version: number): Promise<Finding> {
  const { latestVersion } = await import('../../db/migrate.ts');
  if (version > latestVersion)
    return problem(
      databaseLabel,
      `${found} is at version ${version}, this Sluice knows ${latestVersion}`,
      'start a newer Sluice, or restore a backup made before the upgrade',
    );
  if (version === latestVersion) return ok(databaseLabel, `${found}, at version ${version}`);
  return ok(databaseLabel, `${found}, at version ${version}; the next start brings it to ${latestVersion}`);
}

const rowNames: Record<(typeof growing)[number], string> = {
  deployment: 'deployments',
  revision: 'revisions',
  event: 'events',
  delivery: 'deliveries',
  alert: 'alerts',
  audit: 'audit rows',
  traffic: 'measurements',
  log_segment: 'pieces of logs',
};

function showSize(size: { bytes?: unknown; free?: unknown }, rows: { name?: unknown; rows?: unknown }[]): Finding {
  const free = size.free == null ? '' : `, ${showMegabytes(Number(size.free))} of it free`;
  const counts = rows.map(({ name, rows: count }) => `${count} ${rowNames[name as keyof typeof rowNames]}`);
  return ok('database size', `${showMegabytes(Number(size.bytes))}${free}: ${counts.join(', ')}`);
}

async function checkSqlite(dataDir: string): Promise<Finding[]> {
  const path = join(dataDir, 'sluice.db');
  if (!existsSync(path)) return [ok(databaseLabel, 'SQLite; the first start makes it')];
  const database = new DatabaseSync(path, { readOnly: true, timeout: 2000 });
  try {
    const version = Number(database.prepare(versionQuery).get()?.version ?? 0);
    const found = [await compareVersions('SQLite', version)];
    if (version === 0) return found;
    return [...found, showSize(database.prepare(sizeQuery.sqlite).get()!, database.prepare(rowsQuery.sqlite).all())];
  } finally {
    database.close();
  }
}

async function checkPostgres(url: string): Promise<Finding[]> {
  const { connectOnce } = await import('../../db/postgres-client.ts');
  const { refuseUndeclaredPooler } = await import('../../db/postgres-client.ts');
  await refuseUndeclaredPooler('SLUICE_DATABASE_URL', url);
  const client = await connectOnce(url);
  try {
    const there = await client.query(`select to_regclass('migration') as name`);
    const version = there.rows[0]?.name === null ? 0 : Number((await client.query(versionQuery)).rows[0]?.version ?? 0);
    const found = [await compareVersions('PostgreSQL', version)];
    if (version === 0) return found;
    const [size] = (await client.query(sizeQuery.postgres)).rows;
    return [...found, showSize(size, (await client.query(rowsQuery.postgres)).rows)];
  } finally {
    await client.end().catch(() => {});
  }
}

async function checkDatabase({ databaseUrl, dataDir }: Config): Promise<Finding[]> {
  try {
    return await (databaseUrl === null ? checkSqlite(dataDir) : checkPostgres(databaseUrl));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = error instanceof StartError ? error.lines.join(' ') : message || code || 'it does not answer';
    const todo = databaseUrl === null ? 'is it a database of Sluice?' : 'is it running, and SLUICE_DATABASE_URL right?';
    return [problem(databaseLabel, `${databaseUrl === null ? 'SQLite' : 'PostgreSQL'}: ${reason}`, todo)];
  }
}

interface MetaRow {
  name: string;
  value: string;
}

const prefix = 'engine.';
const enginesQuery = `select name, value from meta where name like '${prefix}%'`;

/** By region. Empty where the database does not answer, which is another finding of the doctor. */
async function readRememberedEngines(config: Config): Promise<Map<string, string>> {
  const rows = await readRows<MetaRow>(config, enginesQuery);
  return new Map(rows.map(({ name, value }) => [name.slice(prefix.length), value]));
}

const singleQuery = `
  select e.region, count(*) as environments
  from environment e join revision r on r.project_id = e.project_id and r.environment = e.name
  where r.state = 'active' and e.replicas = 1
  group by e.region`;

/** A node that is drained evicts the only instance of an environment before there is another. */
async function checkSingleInstances(config: Config): Promise<Finding[]> {
  const onKubernetes = config.regions.filter(({ engine }) => engine.kind === 'kubernetes').map(({ name }) => name);
  if (onKubernetes.length === 0) return [];
  const rows = await readRows<{ region: string; environments: number | string }>(config, singleQuery);
  return rows
    .filter(({ region }) => onKubernetes.includes(region))
    .map(({ region, environments }) =>
      note(
        `drains ${region}`,
        `environments with one instance: ${environments}. While its node is drained, visitors get 503 until another has started`,
        'give each two instances: sluice env set replicas=2',
      ),
    );
}

/** Empty where the database does not answer, or has no such tables yet. */
async function readRows<T>({ databaseUrl, dataDir }: Config, query: string): Promise<T[]> {
  const rows = databaseUrl === null ? readSqlite<T>(dataDir, query) : readPostgres<T>(databaseUrl, query);
  return rows.catch(() => []);
}

async function readSqlite<T>(dataDir: string, query: string): Promise<T[]> {
  const path = join(dataDir, 'sluice.db');
  if (!existsSync(path)) return [];
  const database = new DatabaseSync(path, { readOnly: true, timeout: 2000 });
  try {
    return database.prepare(query).all() as T[];
  } finally {
    database.close();
  }
}

async function readPostgres<T>(url: string, query: string): Promise<T[]> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000, query_timeout: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(query)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
