// The checks of the doctor, in order. They change nothing: no database is created or migrated, no container started.

import { accessSync, constants, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import { addressOf, type Config, readConfig } from '../../config.ts';
import { StartError } from '../../lib/start-error.ts';
import { oldestNode } from '../../version.ts';
import { CliError, exit, type Io } from '../io.ts';
import { clientFor, findService } from '../reach/connect.ts';
import { lookAtDatabase } from './database.ts';
import { type Finding, note, ok, problem } from './finding.ts';
import { readRememberedEngines } from './remembered.ts';

const messageOf = (error: unknown): string => (error as Error).message.split('\n')[0]!;

export async function* look(io: Io): AsyncGenerator<Finding> {
  yield lookAtNode(process.versions.node);
  const config = settingsOf(io);
  if (Array.isArray(config)) yield* config;
  else {
    yield ok('settings', 'as the service would take them');
    yield lookAtDataDir(config.dataDir);
    yield await lookAtDatabase(config);
    const remembered = await readRememberedEngines(config);
    for (const region of config.regions) yield await lookAtRegion(config, region, remembered.get(region.name) ?? null);
    yield await lookAtFfmpeg(config);
    yield* lookAtPorts(config);
  }
  yield await lookAtApi(io);
}

function lookAtNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split('.').map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return ok('Node.js', version);
  return problem('Node.js', version, `install ${oldestNode} or newer, or run npm ci, which brings one`);
}

function settingsOf(io: Io): Config | Finding[] {
  try {
    return readConfig(io.env, false);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.lines.map((line) => problem('settings', line, 'see docs/settings.md'));
  }
}

function lookAtDataDir(dir: string): Finding {
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

async function lookAtRegion(
  config: Config,
  { name, engine: setting }: Config['regions'][number],
  remembered: string | null,
): Promise<Finding> {
  const what = `region ${name}`;
  const { decideEngine, openEngine } = await import('../../engines/choose-engine.ts');
  const { choice, why } = await decideEngine(setting, remembered);
  try {
    const engine = await openEngine(name, choice, { ...config, installation: 'doctor', standinDir: null });
    let away: string[];
    try {
      await engine.probe();
      away = (engine.hosts?.() ?? []).flatMap((host) => (host.available ? [] : [host.name]));
    } finally {
      await engine.close();
    }
    if (away.length > 0) return problem(what, `${why}: ${away.join(', ')} does not answer`, 'start Docker there');
    if (choice.kind !== 'standin' || setting.kind === 'standin') return ok(what, why);
    const todo = remembered === null ? 'start Docker to run containers' : 'name docker: in SLUICE_REGIONS to change it';
    return note(what, why, todo);
  } catch (error) {
    const found = error instanceof StartError ? error.lines.join(' ') : messageOf(error);
    return problem(what, `${why}: ${found}`, 'start the engine, or name another in SLUICE_REGIONS');
  }
}

async function lookAtFfmpeg(config: Config): Promise<Finding> {
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

async function* lookAtPorts({ host, port, routerPort, routerTlsPort }: Config): AsyncGenerator<Finding> {
  const runs = port !== 0 && (await isSluice(addressOf(host, port)));
  yield lookAtPort(['port', port, 'SLUICE_PORT'], host, runs ? 'taken by a Sluice that answers' : null);
  const routes = routerPort !== 0 && (await isSluice(addressOf(host, routerPort)));
  yield lookAtPort(['router port', routerPort, 'SLUICE_ROUTER_PORT'], host, routes ? 'taken by its router' : null);
  const tls = routes ? 'taken, by its router as it seems' : null;
  yield lookAtPort(['router TLS', routerTlsPort, 'SLUICE_ROUTER_TLS_PORT'], host, tls);
}

/** `taken`: who has the port, where that is fine. */
async function lookAtPort([what, port, setting]: Port, host: string, taken: string | null): Promise<Finding> {
  if (port === 0) return ok(what, 'any free one');
  const free = await isFree(host, port);
  if (free === true) return ok(what, `${port} is free`);
  if (free.code !== 'EADDRINUSE') return problem(what, messageOf(free), `choose another ${setting}`);
  if (taken !== null) return ok(what, `${port} is ${taken}`);
  return problem(what, `${port} is taken by another program`, `stop it, or choose another ${setting}`);
}

async function lookAtApi(io: Io): Promise<Finding> {
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
