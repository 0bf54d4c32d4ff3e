// Load on a router: from wrk on one host name, as fast as it gets responses or at a steady pace, with latencies; over
// TLS; and one request alone.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

interface WrkLoad {
  port: number;
  host: string;
  path?: string;
  connections: number;
  seconds: number;
  /** How long each connection waits between two requests; 0: not at all. */
  pauseMs?: number;
}

export interface WrkResult {
  requests: number;
  perSecond: number;
  p99Ms: number;
  longestMs: number;
}

const unitMs: Record<string, number> = { us: 0.001, ms: 1, s: 1000, m: 60_000 };

function ms(text: string | undefined): number {
  const [, value, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(text ?? '') ?? [];
  if (value === undefined) throw new Error(`no time: ${text}`);
  return Number(value) * unitMs[unit!]!;
}

/** Throws where a response is not 2xx or a connection breaks. */
export async function loadHost({
  port,
  host,
  path = '/small',
  connections,
  seconds,
  pauseMs = 0,
}: WrkLoad): Promise<WrkResult> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-wrk-'));
  try {
    writeFileSync(join(dir, 'pace.lua'), `function delay() return ${pauseMs} end`);
    const paced = pauseMs > 0 ? ['-s', join(dir, 'pace.lua')] : [];
    const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-H', `Host: ${host}`, ...paced];
    const { stdout } = await promisify(execFile)('wrk', [...args, `http://127.0.0.1:${port}${path}`]);
    if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every request succeeded:\n${stdout}`);
    return {
      requests: Number(/(\d+) requests in/.exec(stdout)![1]),
      perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]),
      p99Ms: ms(/\s99%\s+(\S+)/.exec(stdout)?.[1]),
      longestMs: ms(/Latency\s+\S+\s+\S+\s+(\S+)/.exec(stdout)?.[1]),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface TlsLoad {
  url: string;
  connections: number;
  seconds: number;
  /** Each request has its own connection, and so its own handshake. */
  handshakes: boolean;
}

/**
 * Requests a second over TLS. wrk takes the server name from the URL and resumes no sessions. Throws where a response is not
 * 2xx.
 */
export async function tlsRequestsPerSecond({ url, connections, seconds, handshakes }: TlsLoad): Promise<number> {
  const closing = handshakes ? ['-H', 'Connection: close'] : [];
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, ...closing, url];
  const { stdout } = await promisify(execFile)('wrk', args);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`not every request succeeded:\n${stdout}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)![1]);
}

/** One request over a connection of its own; null: no answer, or not 200. */
export function bodyAt(port: number, host: string): Promise<string | null> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path: '/small', headers: { host }, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () => resolve(response.statusCode === 200 ? body : null));
    });
    sent.on('error', () => resolve(null)).end();
  });
}
