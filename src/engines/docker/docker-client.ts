// Calls to a Docker Engine API. Each call has a time limit, can be aborted, and fails with an EngineError.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { StartError } from '../../lib/start-error.ts';
import { limitTime } from '../../lib/time-limit.ts';
import { EngineError, type EngineFault } from '../engine.ts';
import { certificatesOf, connectionOf } from './docker-address.ts';
import { type ClientCertificates, type DockerApi, DockerError, openDockerApi } from './docker-api.ts';

/** Limits of single calls, in milliseconds. */
export interface DockerTimeouts {
  probe: number;
  /** List, inspect, logs. */
  read: number;
  /** Create, start, remove. */
  change: number;
  /** A whole pull. */
  pull: number;
  /** The longest that a pull may go without progress. */
  pullSilence: number;
  /** What one container uses. */
  usage: number;
  /** Added to the grace period of a stop. */
  stopMargin: number;
}

export const defaultDockerTimeouts: DockerTimeouts = {
  probe: 5_000,
  read: 10_000,
  change: 30_000,
  pull: 1_800_000,
  pullSilence: 300_000,
  usage: 3_000,
  stopMargin: 20_000,
};

type Work<T> = (signal: AbortSignal, alive: () => void) => Promise<T>;

export interface DockerClient {
  docker: DockerApi;
  timeouts: DockerTimeouts;
  /**
   * Runs `work` and aborts it after the timeout, which every `alive()` restarts. An error response of the engine becomes
   * an EngineError with `fault`; a failed connection or a timeout becomes one with `unavailable`.
   */
  call<T>(timeoutMs: number, fault: EngineFault, work: Work<T>): Promise<T>;
  /** As call(), for calls that create, start or remove something. */
  change<T>(timeoutMs: number, fault: EngineFault, work: Work<T>): Promise<T>;
  /** Whether the latest of those got no answer. */
  changesHang(): boolean;
  /** Aborted by close(). */
  closing: AbortSignal;
  /** Aborts running calls. */
  close(): void;
}

/** The engine took longer than the call may take. */
export class EngineTimeout extends EngineError {
  constructor(timeoutMs: number, cause: unknown) {
    super('unavailable', `Docker did not answer in ${timeoutMs} ms`, cause);
  }
}

export async function connectDocker(address: string, timeouts: DockerTimeouts): Promise<DockerClient> {
  const folder = certificatesOf(address);
  const docker = await openDockerApi(connectionOf(address), folder === null ? undefined : readCertificates(folder));
  const running = new Set<AbortController>();
  const closing = new AbortController();
  let changesHang = false;

  const call: DockerClient['call'] = async (timeoutMs, fault, work) => {
    if (closing.signal.aborted) throw closedError();
    const controller = new AbortController();
    const limit = limitTime(timeoutMs, () => controller.abort());
    running.add(controller);
    try {
      return await work(controller.signal, limit.restart);
    } catch (error) {
      if (!controller.signal.aborted) throw toEngineError(error, fault);
      throw closing.signal.aborted ? closedError() : new EngineTimeout(timeoutMs, error);
    } finally {
      limit.end();
      running.delete(controller);
    }
  };
  return {
    docker,
    timeouts,
    call,
    async change(timeoutMs, fault, work) {
      try {
        const answer = await call(timeoutMs, fault, work);
        changesHang = false;
        return answer;
      } catch (error) {
        changesHang = error instanceof EngineTimeout;
        throw error;
      }
    },
    changesHang: () => changesHang,
    closing: closing.signal,
    close() {
      closing.abort();
      for (const controller of running) controller.abort();
      docker.close();
    },
  };
}

const closedError = () => new EngineError('unavailable', 'the connection to Docker is closed');

/** What the engine said where it responded with an error, one of `statusCodes` if there are any; otherwise null. */
export function errorResponse(error: unknown, ...statusCodes: number[]): DockerError | null {
  const response = error instanceof EngineError ? error.cause : error;
  if (!(response instanceof DockerError)) return null;
  return statusCodes.length === 0 || statusCodes.includes(response.statusCode) ? response : null;
}

export const isErrorResponse = (error: unknown, ...statusCodes: number[]): error is Error =>
  errorResponse(error, ...statusCodes) !== null;

/** Null if the engine responds with one of these statuses. */
export async function nullOnStatus<T>(statusCodes: number[], work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (isErrorResponse(error, ...statusCodes)) return null;
    throw error;
  }
}

function toEngineError(error: unknown, fault: EngineFault): unknown {
  if (error instanceof EngineError || !(error instanceof Error)) return error;
  if (error instanceof DockerError) {
    // Sent by a proxy in front of the engine that cannot reach it.
    const away = [502, 503, 504].includes(error.statusCode);
    return new EngineError(away ? 'unavailable' : fault, error.message, error);
  }
  // Connection errors have a code. An error without one is a bug in this program.
  return 'code' in error ? new EngineError('unavailable', `Docker does not answer: ${error.message}`, error) : error;
}

/** Files named as in DOCKER_CERT_PATH. */
function readCertificates(folder: string): ClientCertificates {
  const read = (name: string): Buffer => {
    try {
      return readFileSync(join(folder, name));
    } catch (error) {
      throw new StartError(
        `SLUICE_REGIONS: the certificates of a Docker host cannot be read: ${(error as Error).message}`,
      );
    }
  };
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') };
}

/**
 * Whether Docker answers a list of containers. Its `/_ping` is no proof: it is answered while everything else hangs,
 * for example behind a storage or network plug-in that does not respond.
 */
export async function probeReads({ docker, call, timeouts }: DockerClient): Promise<void> {
  const query = { all: true, limit: 1 };
  await call(timeouts.probe, 'unavailable', (signal) => docker.request('GET', '/containers/json', { query, signal }));
}

const noSuchImage = `sluice.invalid/none@sha256:${'0'.repeat(64)}`;

/** Asks for a container of an image that cannot exist, which takes the way of every creation up to the image. */
export async function probeChanges({ docker, change, timeouts }: DockerClient): Promise<void> {
  const body = { Image: noSuchImage };
  await nullOnStatus([404], () =>
    change(timeouts.probe, 'unavailable', (signal) => docker.request('POST', '/containers/create', { body, signal })),
  );
}

/** A stream of JSON objects, one a line: the progress of a pull, and events. */
export async function* jsonLines<T>(stream: Readable): AsyncGenerator<T> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    yield* lines.filter((line) => line.trim() !== '').map((line) => parseLine<T>(line));
  }
  if (rest.trim() !== '') yield parseLine(rest);
}

function parseLine<T>(line: string): T {
  try {
    return JSON.parse(line) as T;
  } catch (error) {
    throw new EngineError('unavailable', 'Docker broke off in the middle of a line', error);
  }
}
