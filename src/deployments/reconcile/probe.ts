// One health check of an instance.
import { connect } from 'node:net';
import { get } from '../../lib/node-http.ts';

export type ProbeResult =
  | { ok: true; message?: string }
  /** no_connection: refused, or closed at once; no_answer: not in time. */
  | { ok: false; fault: 'no_connection' | 'no_answer' | 'bad_answer'; message: string };

export interface ProbeTarget {
  host: string;
  port: number;
  /** null: a TCP connect is enough. */
  path: string | null;
  timeoutMs: number;
}

/**
 * Docker's proxy accepts connections for a program that does not listen yet, and then closes them. So a connection
 * counts only once it has stayed open for a moment.
 */
const mustStayOpenMs = 60;

export type Probe = (target: ProbeTarget) => Promise<ProbeResult>;

export const probe: Probe = (target) =>
  target.path === null ? probeTcp(target) : probeHttp({ ...target, path: target.path });

function probeTcp({ host, port, timeoutMs }: ProbeTarget): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let timer = setTimeout(() => finish(tooSlow('no connection in time')), timeoutMs);
    const finish = (result: ProbeResult) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    socket.on('connect', () => {
      clearTimeout(timer);
      timer = setTimeout(() => finish({ ok: true }), mustStayOpenMs);
    });
    socket.on('data', () => finish({ ok: true }));
    socket.on('error', (error) => finish(unreachable(error.message)));
    socket.on('close', () => finish(unreachable('the connection was closed at once')));
  });
}

function probeHttp({ host, port, path, timeoutMs }: ProbeTarget & { path: string }): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const request = get({ host, port, path, agent: false, headers: { 'user-agent': 'sluice-health' } }, (response) => {
      const status = response.statusCode ?? 0;
      response.destroy();
      const ok = status >= 200 && status < 400;
      const message = `${path} answered ${status}`;
      finish(ok ? { ok, message } : { ok: false, fault: 'bad_answer', message });
    });
    const timer = setTimeout(() => finish(tooSlow(`${path}: no answer in time`)), timeoutMs);
    const finish = (result: ProbeResult) => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    request.on('error', (error) => finish(unreachable(error.message)));
  });
}

const unreachable = (message: string): ProbeResult => ({ ok: false, fault: 'no_connection', message });

const tooSlow = (message: string): ProbeResult => ({ ok: false, fault: 'no_answer', message });
