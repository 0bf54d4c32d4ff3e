// The stand-in starts no containers. Each instance is an HTTP server inside this process, on its own port, that responds
// with its image, revision and instance, so that Sluice can be tried on a machine without Docker. The service runs it in a
// process beside its own (standin-process.ts); tests run it in theirs.
// Variables make an instance misbehave:
//   STANDIN_ERROR_RATE=0.2       that share of responses is 500
//   STANDIN_ERROR_PATH=/cart     responses to paths that begin so are 500
//   STANDIN_HANG_RATE=0.2        that share of requests gets no response
//   STANDIN_LATENCY_MS=50        every response takes that long
//   STANDIN_EXIT_AFTER_S=3       it exits after that time
//   STANDIN_EXIT_ON=/exit        it exits when it is asked for that path
//   STANDIN_FAIL_ON=/fail        from the first request for that path on, every response is 500
//   STANDIN_UNHEALTHY=1          it does not listen
//   STANDIN_IMAGE_MISSING=1      the image cannot be found
//   STANDIN_LOG_LINES=1000       it logs that many lines of 16 kB when it starts
//   STANDIN_LOG_TEXT={"a":1}     what each of these lines says
//   STANDIN_EARLY_HINTS=1        it answers with 103 and never with anything else
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { keptImageId, localDigest, parseImage, revisionId } from '../../contract/references.ts';
import { latestThatFit } from '../../lib/log-lines.ts';
import { createServer } from '../../lib/node-http.ts';
import {
  defaultLogBytes,
  EngineError,
  type EngineFault,
  type EngineInstance,
  type InstanceEngine,
  type InstanceSpec,
  type LogLine,
} from '../engine.ts';
import { followStandin, StandinLog } from './standin-log.ts';

export const standinHost = '127.0.0.1';
const maxLogLines = 1000;
const maxLineLength = 16_000;

interface Running {
  spec: InstanceSpec;
  server: Server;
  exitCode: number | null;
  log: StandinLog;
  endedAt: number | null;
  timer: NodeJS.Timeout | null;
}

export interface StandinEngine extends InstanceEngine {
  /** The first half of stop(): the instance has ended, and its log can still be read. */
  end(id: string, graceS: number): Promise<void>;
}

export function createStandinEngine(): StandinEngine {
  const instances = new Map<string, Running>();
  const endInstance = async (id: string, graceS: number): Promise<void> => {
    const running = instances.get(id);
    if (!running) return;
    if (running.timer) clearTimeout(running.timer);
    if (running.server.listening) await closeServer(running.server, graceS);
    running.log.close();
  };

  return {
    kind: 'standin',
    publishesOn: [standinHost],
    async probe() {},
    async prepare(image, variables, access) {
      if (flag(variables.STANDIN_IMAGE_MISSING)) throw new EngineError('image_not_found', `there is no image ${image}`);
      const digest = parseImage(image)?.digest ?? digestOf(image);
      const kept = keptImageId(image);
      if (kept !== null) return { digest: localDigest(kept) };
      // It has what has no registry in its name, as the machine of a developer would.
      return { digest: access?.mayBeLocal && !image.includes('/') ? localDigest(digest) : digest };
    },
    async start(spec) {
      if (instances.has(spec.id)) return;
      const running: Running = {
        spec,
        server: createServer(),
        exitCode: null,
        endedAt: null,
        log: new StandinLog(maxLogLines),
        timer: null,
      };
      instances.set(spec.id, running);
      running.server.on('request', answer(running));
      note(running, `instance ${spec.id} of ${spec.image} started`);
      const logLines = Math.min(Number(spec.variables.STANDIN_LOG_LINES) || 0, maxLogLines);
      const logText = spec.variables.STANDIN_LOG_TEXT;
      for (let line = 1; line <= logLines; line++) note(running, logText ?? `${line} `.padEnd(maxLineLength, '.'));
      if (!flag(spec.variables.STANDIN_UNHEALTHY)) {
        await listen(running).catch((error) => {
          instances.delete(spec.id);
          throw error;
        });
      }
      const exitAfterS = Number(spec.variables.STANDIN_EXIT_AFTER_S);
      if (exitAfterS > 0) running.timer = setTimeout(() => end(running, 1), exitAfterS * 1000);
    },
    end: endInstance,
    list: async () => [...instances.values()].map(describe),
    async stop(id, graceS, beforeRemoval) {
      await endInstance(id, graceS);
      await beforeRemoval?.();
      instances.delete(id);
    },
    async logs(id, { tail, sinceMs = 0, maxBytes = defaultLogBytes }) {
      const lines = instances.get(id)?.log.since(sinceMs) ?? [];
      return tail === 0 ? [] : latestThatFit(lines.slice(-tail), maxBytes);
    },
    follow: (id, after, signal) => followStandin(instances.get(id)?.log, after, signal),
    async close() {
      for (const running of instances.values()) end(running, 0);
      instances.clear();
    },
  };
}

function describe({ spec, server, exitCode, endedAt }: Running): EngineInstance {
  const address = server.address() as AddressInfo | null;
  return {
    id: spec.id,
    project: spec.project,
    environment: spec.environment,
    revision: spec.revision,
    state: exitCode === null ? 'running' : 'exited',
    address: exitCode === null ? { host: standinHost, port: address?.port ?? spec.hostPort ?? 1 } : null,
    exitCode,
    node: hostname(),
    ...(exitCode !== null && { ended: { at: endedAt, reason: 'exited' as const, memoryLimitMb: null } }),
  };
}

async function listen({ server, spec }: Running): Promise<void> {
  try {
    server.listen(spec.hostPort ?? 0, standinHost);
    await once(server, 'listening');
  } catch (error) {
    const fault = (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'port_taken' : 'start_failed';
    throw new EngineError(fault, (error as Error).message, error);
  }
}

async function closeServer(server: Server, graceS: number): Promise<void> {
  server.close();
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), graceS * 1000);
  await once(server, 'close');
  clearTimeout(force);
}

const flag = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== '0';

const digestOf = (image: string): string => `sha256:${createHash('sha256').update(image).digest('hex')}`;

function note(running: Running, text: string, stream: LogLine['stream'] = 'stdout'): void {
  running.log.add(stream, text.slice(0, maxLineLength));
}

function end(running: Running, exitCode: number): void {
  if (running.exitCode !== null) return;
  running.exitCode = exitCode;
  running.endedAt = Date.now();
  if (running.timer) clearTimeout(running.timer);
  note(running, `instance ended with exit code ${exitCode}`, 'stderr');
  running.log.close();
  running.server.close();
  running.server.closeAllConnections();
}

function answer(running: Running) {
  const { spec } = running;
  const { STANDIN_EXIT_ON: exitOn, STANDIN_FAIL_ON: failOn } = spec.variables;
  const errorRate = Number(spec.variables.STANDIN_ERROR_RATE) || 0;
  const hangRate = Number(spec.variables.STANDIN_HANG_RATE) || 0;
  const errorPath = spec.variables.STANDIN_ERROR_PATH;
  const latencyMs = Number(spec.variables.STANDIN_LATENCY_MS) || 0;
  const body = JSON.stringify({ image: spec.image, revision: revisionId(spec.revision), instance: spec.id });
  let failing = 0;
  let hanging = 0;
  let failsAlways = false;
  return (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    if (request.url === exitOn) return end(running, 1);
    if (request.url === failOn) failsAlways = true;
    hanging += hangRate;
    if (hanging >= 1) {
      hanging -= 1;
      return;
    }
    const respond = () => {
      // Errors are spread evenly, not at random: of n responses, n × rate are errors.
      failing += errorRate;
      const isTurn = failing >= 1;
      if (isTurn) failing -= 1;
      const failed = isTurn || failsAlways || (errorPath !== undefined && request.url!.startsWith(errorPath));
      if (failed) note(running, `${request.method} ${request.url} 500`, 'stderr');
      response.writeHead(failed ? 500 : 200, { 'content-type': 'application/json' });
      response.end(`${body}\n`);
    };
    if (flag(spec.variables.STANDIN_EARLY_HINTS)) hintForEver(response);
    else if (latencyMs > 0) setTimeout(respond, latencyMs);
    else respond();
  };
}

/** As fast as it is read. */
function hintForEver(response: ServerResponse): void {
  const { socket } = response;
  const more = () => {
    while (socket?.writable && socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'));
  };
  socket?.on('drain', more);
  more();
}

/**
 * The body of a POST from the control process to the process of the instances. The answer is JSON or, to `follow`,
 * the lines.
 */
export interface StandinCall {
  /** Those that share a data directory do not see each other's instances. */
  installation: string;
  method: keyof Pick<StandinEngine, 'start' | 'list' | 'end' | 'stop' | 'logs' | 'follow'>;
  args: unknown[];
}

export type StandinAnswer = { result: unknown } | { fault: EngineFault; message: string };
