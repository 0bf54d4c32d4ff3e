// What load balancers and the kubelet ask a router: whether it lives, and whether to send it requests. They ask by address,
// and no deployed revision has one for a host name, so nothing is taken from visitors. It says nothing of the database or
// the control plane, which requests do not need.
import type { RequestHead } from './headers.ts';
import type { VisitorResponse } from './visitor-messages.ts';

export const probePaths = { live: '/livez', ready: '/readyz' } as const;

/** A host name in this form is an address. */
export const addressPattern = '^([0-9]+([.][0-9]+){3}|\\[[0-9a-f:.]+\\])$';

const address = new RegExp(addressPattern);

export function isProbe({ hostName, path, hasBody }: RequestHead, method: string | undefined): boolean {
  if (path !== probePaths.live && path !== probePaths.ready) return false;
  return (method === 'GET' || method === 'HEAD') && !hasBody && address.test(hostName);
}

export function answerProbe(response: VisitorResponse, path: string, stopping: boolean): void {
  const away = stopping && path === probePaths.ready;
  const body = away ? 'stopping\n' : 'ok\n';
  const headers = ['content-type', 'text/plain; charset=utf-8', 'content-length', String(body.length)];
  headers.push('cache-control', 'no-store');
  if (stopping) headers.push('connection', 'close');
  response.writeHead(away ? 503 : 200, headers);
  response.end(body);
}
