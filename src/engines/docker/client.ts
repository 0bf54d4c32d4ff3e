// The way to a Docker Engine API: one bounded, abortable call at a time, whose faults are those of engine.ts. Every call
// has a connection of its own, so that an engine that came back is never met through a dead one, and none is left open.
import { Agent } from 'node:http';
import type Docker from 'dockerode';
import type { DockerOptions } from 'dockerode';
import { EngineError, type EngineFault } from '../engine.ts';

export const defaultDockerSocket = '/var/run/docker.sock';

/** Limits of single calls, in milliseconds. */
export interface DockerTimeouts {
  probe: number;
  /** Looking at what is there: list, inspect, logs. */
  read: number;
  /** Create, start, remove. */
  change: number;
  /** A pull as a whole, and the longest silence in it. */
  pull: number;
  pullSilence: number;
  /** Added to the grace of a stop. */
  stopMargin: number;
}

export const defaultDockerTimeouts: DockerTimeouts = {
  probe: 3_000,
  read: 10_000,
  change: 30_000,
  pull: 600_000,
  pullSilence: 120_000,
  stopMargin: 20_000,
};

type Work<T> = (abortSignal: AbortSignal, alive: () => void) => Promise<T>;

export interface DockerClient {
  docker: Docker;
  timeouts: DockerTimeouts;
  /**
   * Runs `work`, aborts it after the time (counted anew from every `alive()`), and gives every fault its kind: an answer
   * that is an error becomes `fault`.
   */
  call<T>(timeoutMs: number, fault: EngineFault, work: Work<T>): Promise<T>;
  /** Aborts what still runs. */
  close(): void;
}

export async function connectDocker(address: string, timeouts: DockerTimeouts): Promise<DockerClient> {
  const { default: Client } = await import('dockerode');
  const agent = new Agent({ keepAlive: false });
  const options: DockerOptions & { agent: Agent } = { ...connectionOf(address), agent };
  const docker = new Client(options);
  const running = new Set<AbortController>();
  let closed = false;
  return {
    docker,
    timeouts,
    async call(timeoutMs, fault, work) {
      if (closed) throw closedError();
      const controller = new AbortController();
      const timer = setTimeout(() => controller.abort(), timeoutMs);
      running.add(controller);
      try {
        return await work(controller.signal, () => timer.refresh());
      } catch (error) {
        if (controller.signal.aborted) {
          throw closed
            ? closedError()
            : new EngineError('unavailable', `Docker did not answer in ${timeoutMs} ms`, error);
        }
        throw explain(error, fault);
      } finally {
        clearTimeout(timer);
        running.delete(controller);
      }
    },
    close() {
      closed = true;
      for (const controller of running) controller.abort();
      agent.destroy();
    },
  };
}

/** For what dockerode cannot abort, or not by its types. */
export function get<T>(docker: Docker, path: string, abortSignal: AbortSignal): Promise<T> {
  const statusCodes = { 200: true as const, 404: 'not found', 500: 'server error' };
  return new Promise((resolve, reject) => {
    docker.modem.dial({ path, method: 'GET', abortSignal, statusCodes }, (error, data) =>
      error ? reject(error) : resolve(data as T),
    );
  });
}

const closedError = () => new EngineError('unavailable', 'the connection to Docker is closed');

/** What dockerode rejects with when the engine answered with an error. */
export interface DockerAnswer extends Error {
  statusCode: number;
}

export const isAnswer = (error: unknown, ...statusCodes: number[]): error is DockerAnswer => {
  const answer = error instanceof EngineError ? error.cause : error;
  const { statusCode } = (answer ?? {}) as Partial<DockerAnswer>;
  return statusCode !== undefined && (statusCodes.length === 0 || statusCodes.includes(statusCode));
};

function explain(error: unknown, fault: EngineFault): unknown {
  if (error instanceof EngineError || !(error instanceof Error)) return error;
  if (isAnswer(error)) {
    // A gateway in between that finds no engine behind it.
    const away = [502, 503, 504].includes(error.statusCode);
    return new EngineError(away ? 'unavailable' : fault, messageOf(error), error);
  }
  // Whatever goes wrong with a connection has a code; what has none is a mistake of ours.
  return 'code' in error ? new EngineError('unavailable', `Docker does not answer: ${error.message}`, error) : error;
}

/** Without what dockerode puts around it. */
export function messageOf(error: Error): string {
  return error.message.replace(/^\(HTTP code \d+\) [^-]*- /, '').trim();
}

type Connection =
  | { socketPath: string; host: undefined }
  | { host: string; port: number; protocol: 'http'; socketPath: undefined };

/** The absent half is named too, or dockerode would take it from DOCKER_HOST. */
export function connectionOf(address: string): Connection {
  const remote = remoteOf(address);
  if (remote) return { ...remote, protocol: 'http', socketPath: undefined };
  return { socketPath: address.replace(/^unix:\/\//, ''), host: undefined };
}

function remoteOf(address: string): { host: string; port: number } | null {
  if (!/^(tcp|http):\/\//.test(address)) return null;
  const { hostname, port } = new URL(address.replace(/^tcp:/, 'http:'));
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 2375) };
}

export interface Reach {
  /** Where the engine is told to publish ports. */
  bind: string;
  /** Where they are reached from here. */
  host: string;
}

/**
 * An engine on this machine publishes on loopback alone. One elsewhere publishes on the address it is reached at; where
 * that is a name, on all of its addresses, because which one the name leads to is not ours to know.
 */
export function reachOf(address: string): Reach {
  const remote = remoteOf(address);
  if (!remote || remote.host === 'localhost') return { bind: '127.0.0.1', host: '127.0.0.1' };
  const isLiteral = /^[\d.]+$/.test(remote.host) || remote.host.includes(':');
  return { bind: isLiteral ? remote.host : '0.0.0.0', host: remote.host };
}
