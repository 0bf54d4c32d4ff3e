// The stand-in as the control process uses it: its instances run in a process of their own, which is started for the
// first of them. Where there is none, there are no instances.
import { spawn } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { entryPath } from '../../lib/install.ts';
import { request } from '../../lib/node-http.ts';
import { socketPathIn } from '../../lib/private-files.ts';
import { EngineError, type EngineInstance, type InstanceEngine, type LogLine } from '../engine.ts';
import { createStandinEngine, type StandinAnswer, type StandinCall, standinHost } from './standin.ts';

const callMs = 10_000;
const startWithinMs = 30_000;
const retryMs = 25;
const startEvery = 40;

/** No process answers at the socket. */
class NoProcess extends Error {}

export function standinInOwnProcess(dir: string, installation: string): InstanceEngine {
  const { prepare } = createStandinEngine();
  const ask = async (method: StandinCall['method'], args: unknown[], withinMs = callMs) => {
    const answer = await post(socketPathIn(dir, 'standin.sock'), { installation, method, args }, withinMs);
    if ('fault' in answer) throw new EngineError(answer.fault, answer.message);
    return answer.result;
  };
  const orElse = <T>(fallback: T, asked: Promise<unknown>): Promise<T> =>
    (asked as Promise<T>).catch((error) => {
      if (error instanceof NoProcess) return fallback;
      throw error;
    });
  return {
    kind: 'standin',
    isForgetful: true,
    publishesOn: [standinHost],
    async probe() {},
    prepare,
    async start(spec) {
      const giveUpAt = performance.now() + startWithinMs;
      for (let attempt = 0; ; attempt++) {
        try {
          await ask('start', [{ ...spec, login: null }]);
          return;
        } catch (error) {
          if (!(error instanceof NoProcess)) throw error;
          if (performance.now() > giveUpAt) throw new EngineError('unavailable', 'the stand-in does not start');
        }
        // Again, where the one before was just ending.
        if (attempt % startEvery === 0) startProcess(dir);
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    },
    list: () => orElse<EngineInstance[]>([], ask('list', [])),
    async stop(id, graceS, beforeRemoval) {
      const withinMs = callMs + graceS * 1000;
      if (beforeRemoval) {
        await orElse(undefined, ask('end', [id, graceS], withinMs));
        await beforeRemoval();
      }
      await orElse(undefined, ask('stop', [id, graceS], withinMs));
    },
    logs: (id, query) => orElse<LogLine[]>([], ask('logs', [id, query])),
    follow: (id, after, signal) =>
      followProcess(socketPathIn(dir, 'standin.sock'), { installation, method: 'follow', args: [id, after] }, signal),
    async close() {},
  };
}

/** Without the environment of the service, which holds secrets. */
function startProcess(dir: string): void {
  spawn(process.execPath, [entryPath('standin'), dir], { cwd: '/', env: {}, detached: true, stdio: 'ignore' })
    .on('error', () => {}) // the caller asks until it has waited long enough
    .unref();
}

async function* followProcess(socketPath: string, call: StandinCall, signal: AbortSignal): AsyncGenerator<Buffer> {
  const response = await open(socketPath, call, signal).catch((error) => {
    if (signal.aborted || error instanceof NoProcess) return null;
    throw error;
  });
  let rest = Buffer.alloc(0);
  try {
    for await (const chunk of response ?? []) {
      const data = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
      const end = data.lastIndexOf(0x0a) + 1;
      rest = Buffer.from(data.subarray(end));
      if (end > 0) yield data.subarray(0, end);
    }
  } catch (error) {
    if (!signal.aborted) throw new EngineError('unavailable', 'the stand-in ended', error);
  } finally {
    response?.destroy();
  }
}

function open(socketPath: string, call: StandinCall, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method: 'POST', agent: false, signal }, resolve);
    sent.on('error', (error: NodeJS.ErrnoException) => reject(isAway(error) ? new NoProcess() : error));
    sent.end(JSON.stringify(call));
  });
}

/** The last two: it ended between the connection and the answer. */
const away = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'];
const isAway = ({ code = '' }: NodeJS.ErrnoException): boolean => away.includes(code);

function post(socketPath: string, call: StandinCall, withinMs: number): Promise<StandinAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method: 'POST', agent: false, timeout: withinMs }, (response) => {
      json(response).then((answer) => resolve(answer as StandinAnswer), reject);
    });
    sent.on('timeout', () => sent.destroy(new EngineError('unavailable', 'the stand-in does not answer')));
    sent.on('error', (error: NodeJS.ErrnoException) => reject(isAway(error) ? new NoProcess() : error));
    sent.end(JSON.stringify(call));
  });
}
