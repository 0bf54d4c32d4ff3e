// The supervisor: it opens the ports, starts the control process and the router workers, replaces what ends, and on SIGHUP
// replaces everything by what is on disk now. It loads nothing of what it starts, so that it is there at once, stays
// small, and has little reason to fail.
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { isatty } from 'node:tty';
import { type Config, readConfig } from '../config.ts';
import { makeDataDir } from '../data-dir.ts';
import { explainStart, StartError, wrongSettings } from '../lib/start-error.ts';
import { type ChosenPlane, choosePlane } from '../traffic/haproxy/choose-plane.ts';
import { haproxyFilesOf } from '../traffic/haproxy/haproxy-files.ts';
import { runningMaster, stopMaster } from '../traffic/haproxy/haproxy-process.ts';
import { ChildFailed } from './child.ts';
import { Fleet } from './fleet.ts';
import { openSockets, refuseTakenPorts, type Sockets } from './sockets.ts';
import { createSupervisorLog, type SupervisorLog } from './supervisor-log.ts';
import {
  OrphanedProcesses,
  openSupervisorSocket,
  type ReloadOutcome,
  type SupervisorSocket,
} from './supervisor-socket.ts';

type Env = Record<string, string | undefined>;

/** For requests in a HAProxy that is no longer wanted. */
const leftoverMs = 5000;
/** The lines for people are printed when everything answers, or after this time without the workers. */
const greetWithinMs = 10_000;

/** Resolves with the exit code, once everything has ended. */
export async function supervise(env: Env, isTerminal: boolean): Promise<number> {
  try {
    const settings = readConfig(env, isTerminal);
    const plane = choosePlane({
      setting: settings.dataPlane,
      haproxy: settings.haproxy,
      hasFixedPorts: settings.routerPort !== 0 && settings.routerTlsPort !== 0,
      hasReceivedPorts: Number(env.LISTEN_PID) === process.pid && Number(env.LISTEN_FDS ?? 0) > 1,
      searchPath: `${env.PATH ?? ''}:/usr/sbin:/sbin`,
    });
    const config = { ...settings, haproxy: plane.haproxy };
    makeDataDir(config.dataDir);
    const log = createSupervisorLog(config.logLevel, config.logFormat);
    const door = await openDoor(config.dataDir, log);
    const orphans = door?.orphans ?? new OrphanedProcesses();
    try {
      const haproxyFiles = haproxyFilesOf(config.dataDir);
      // One that a killed service left behind holds the ports.
      if (plane.haproxy === null) await stopMaster(haproxyFiles, leftoverMs);
      else if (config.roles.includes('router') && runningMaster(haproxyFiles) === null)
        await refuseTakenPorts(config, orphans);
      const sockets = await openSockets(config, env, process.pid, orphans);
      return await new Supervisor({ config, sockets, env, plane, log, door }).run(isTerminal);
    } finally {
      door?.close();
    }
  } catch (error) {
    const { lines, exitCode } = explainStart(error);
    for (const line of lines) process.stderr.write(`sluice: ${line}\n`);
    return exitCode;
  }
}

/** null: it cannot be opened, and the service does without. */
function openDoor(dataDir: string, log: SupervisorLog): Promise<SupervisorSocket | null> {
  return openSupervisorSocket(dataDir).catch((error) => {
    if (error instanceof StartError) throw error;
    log.warn({ reason: error.message }, '`sluice reload` cannot reach this service; SIGHUP can');
    return null;
  });
}

/** The environment of children, without what systemd passed to this process. */
function childEnv({ LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES, NOTIFY_SOCKET, ...env }: Env): Env {
  const compiled = getCompileCacheDir();
  // Without it the first file of every child would be compiled anew, by a compiler that has to be loaded for it.
  return { ...(compiled && { NODE_COMPILE_CACHE: dirname(compiled) }), ...env };
}

/** The supervisor ends by a signal. */
const never = new Promise<number>(() => {});

const waited = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());

interface SupervisorParts {
  config: Config;
  sockets: Sockets;
  env: Env;
  plane: ChosenPlane;
  log: SupervisorLog;
  door: SupervisorSocket | null;
}

class Supervisor {
  readonly #sockets: Sockets;
  readonly #log: SupervisorLog;
  readonly #fleet: Fleet;
  readonly #door: SupervisorSocket | null;
  #reloads: Promise<unknown> = Promise.resolve();
  #state: 'starting' | 'serving' | 'stopping' = 'starting';

  constructor({ config, sockets, env, plane, log, door }: SupervisorParts) {
    this.#sockets = sockets;
    this.#log = log;
    this.#door = door;
    if (door) door.reload = () => this.#reload();
    // Decided once: a control process that starts later goes by it, whatever is installed by then.
    const decided = { SLUICE_DATA_PLANE: plane.haproxy === null ? 'builtin' : `haproxy:${plane.haproxy}` };
    const parts = { config, sockets, env: { ...childEnv(env), ...decided }, log: this.#log };
    this.#fleet = new Fleet({ ...parts, routerLine: config.roles.includes('router') ? plane.line : null });
  }

  async run(isTerminal: boolean): Promise<number> {
    const started = this.#start();
    const stopped = this.#listenToSignals(isTerminal);
    const exitCode = await Promise.race([stopped, started]);
    this.#fleet.leaveBehind();
    return exitCode;
  }

  /** Resolves only if the start fails: the service then ends with the exit code of the control process. */
  async #start(): Promise<number> {
    const fleet = this.#fleet;
    const control = fleet.startControl();
    // They load while it does, get their table as soon as it has one, and go on without it if it waits for its database.
    const workers = fleet.startWorkers();
    try {
      await control;
    } catch (error) {
      if (this.#state === 'stopping') return never;
      const { exitCode } = error as { exitCode?: number };
      // Settings that are wrong do not become right by themselves.
      if (exitCode === wrongSettings || !fleet.servesWithoutControl) {
        fleet.killAll();
        return exitCode ?? 1;
      }
      const message = 'visitors are served as before; the control process is started until it succeeds';
      this.#log.error({ reason: (error as Error).message }, message);
      void workers.then(() => this.#releaseOrphans());
      await fleet.retryControl();
    }
    if (this.#state === 'starting') this.#state = 'serving';
    void workers.then(() => this.#releaseOrphans());
    await Promise.race([workers, waited(greetWithinMs)]);
    fleet.greet();
    return never;
  }

  /** Those that take their place accept requests. */
  #releaseOrphans(): void {
    const processes = this.#door?.orphans.release() ?? 0;
    if (processes > 0) this.#log.info({ processes }, 'took over from the processes of a supervisor that was killed');
  }

  /** The first signal stops in order; a second one ends at once. */
  #listenToSignals(isTerminal: boolean): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    const stop = (signal: NodeJS.Signals) => {
      if (this.#state === 'stopping') {
        void this.#fleet.stopNow().then(() => resolve(1));
        return;
      }
      this.#state = 'stopping';
      this.#log.info({ signal }, 'the service stops');
      if (!this.#sockets.outlive) this.#sockets.close();
      void this.#fleet.stop().then(() => resolve(0));
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
    process.on('SIGHUP', () => {
      // The same signal says that the terminal it was started on is gone.
      if (isTerminal && !isatty(1)) stop('SIGHUP');
      else void this.#reload();
    });
    return promise;
  }

  /** One after another, however often it is asked for. */
  #reload(): Promise<ReloadOutcome> {
    const outcome = this.#reloads.then(() => this.#reloadNow());
    this.#reloads = outcome;
    return outcome;
  }

  async #reloadNow(): Promise<ReloadOutcome> {
    if (this.#state !== 'serving') return { ok: false, message: `Not reloaded: the service is ${this.#state}.` };
    try {
      await this.#fleet.replaceAll();
      this.#log.info({}, 'reloaded: the service runs what is on disk now');
      return { ok: true, message: 'The service runs what is on disk now.' };
    } catch (error) {
      const reason = error instanceof ChildFailed ? error.message : String((error as Error).stack);
      const message = `Not reloaded: ${reason}. The old processes keep serving.`;
      this.#log.error({}, message);
      return { ok: false, message };
    }
  }
}
