// A small double of the Kubernetes API, for what a real server does not do on command: 410, 429, conflicts, watches that
// break or fall silent. It stores objects, lists them in pages, streams changes, and knows server-side apply as far as the
// engine uses it. What controllers and kubelets do, a test does itself.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClusterAccess } from '../../src/engines/kubernetes/cluster-access.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of any kind
export type Json = any;

interface Watcher {
  response: ServerResponse;
  collection: string;
  selector: string;
}

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body?: object;
}

export interface KubeApi {
  access: ClusterAccess;
  /** By path. */
  objects: Map<string, Json>;
  /** What was asked, `METHOD path?query`. */
  asked: string[];
  /** The next request that matches is answered with this instead. */
  answerNext(matching: RegExp, answer: Answer): void;
  /** As a controller or kubelet does; null removes it. */
  put(path: string, object: Json | null): void;
  /** Watches so far, and those that are open. */
  watches(): { begun: number; open: number };
  /** Ends every watch in the middle of a line. */
  cut(): void;
  /** Watches stay open and say nothing any more. */
  mute(): void;
  /** Tells every watch that its version is too old. */
  expire(): void;
  bookmark(): void;
  pageSize: number;
  close(): Promise<void>;
}

export async function startKubeApi(): Promise<KubeApi> {
  const objects = new Map<string, Json>();
  const asked: string[] = [];
  const special: { matching: RegExp; answer: Answer }[] = [];
  let watchers: Watcher[] = [];
  let begun = 0;
  let isMuted = false;
  let version = 100;

  const emit = (type: string, path: string, object: Json) => {
    if (isMuted) return;
    for (const watcher of watchers) {
      if (collectionsOf(path).includes(watcher.collection) && isSelected(object, watcher.selector)) {
        watcher.response.write(`${JSON.stringify({ type, object })}\n`);
      }
    }
  };
  const put = (path: string, object: Json | null) => {
    const before = objects.get(path);
    const resourceVersion = String(++version);
    if (object === null) {
      if (!before) return null;
      objects.delete(path);
      const gone = { ...before, metadata: { ...before.metadata, resourceVersion } };
      emit('DELETED', path, gone);
      return gone;
    }
    const uid = before?.metadata.uid ?? `uid-${version}`;
    const creationTimestamp = before?.metadata.creationTimestamp ?? new Date().toISOString();
    const stored = { ...object, metadata: { uid, creationTimestamp, ...object.metadata, resourceVersion } };
    objects.set(path, stored);
    emit(before ? 'MODIFIED' : 'ADDED', path, stored);
    return stored;
  };

  const list = (collection: string, url: URL): Answer => {
    const found = [...objects].filter(([path]) => collectionsOf(path).includes(collection)).map(([, object]) => object);
    const selected = found.filter((object) => isSelected(object, url.searchParams.get('labelSelector') ?? ''));
    const from = Number(url.searchParams.get('continue') ?? 0);
    const rest = from + api.pageSize < selected.length ? { continue: String(from + api.pageSize) } : {};
    const items = selected.slice(from, from + api.pageSize);
    return { status: 200, body: { metadata: { resourceVersion: String(version), ...rest }, items } };
  };

  const change = (method: string, path: string, body: Json): Answer => {
    const before = objects.get(path);
    if (method === 'DELETE') {
      if (!before) return statusOf(404, 'NotFound');
      if (body?.preconditions?.uid && body.preconditions.uid !== before.metadata.uid) return statusOf(409, 'Conflict');
      return { status: 200, body: put(path, null) };
    }
    const expected = body.metadata?.resourceVersion;
    if (expected !== undefined && !before) return statusOf(404, 'NotFound');
    if (expected !== undefined && expected !== before.metadata.resourceVersion) return statusOf(409, 'Conflict');
    return { status: before ? 200 : 201, body: put(path, merge(before ?? {}, body)) };
  };

  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url!, 'http://localhost');
    const what = `${request.method} ${decodeURIComponent(request.url!)}`;
    asked.push(what);
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = text === '' ? null : JSON.parse(text);
    const index = special.findIndex(({ matching }) => matching.test(what));
    const [chosen] = index < 0 ? [] : special.splice(index, 1);
    if (!chosen && url.searchParams.get('watch') === 'true') {
      begun++;
      const watcher = { response, collection: url.pathname, selector: url.searchParams.get('labelSelector') ?? '' };
      watchers.push(watcher);
      response.on('close', () => {
        watchers = watchers.filter((each) => each !== watcher);
      });
      return void response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    }
    const isCollection = /\/(pods|replicasets|secrets|namespaces|networkpolicies|poddisruptionbudgets)$/.test(
      url.pathname,
    );
    const found = objects.get(url.pathname);
    const answer: Answer =
      chosen?.answer ??
      (request.method !== 'GET'
        ? change(request.method!, url.pathname, body)
        : isCollection
          ? list(url.pathname, url)
          : found
            ? { status: 200, body: found }
            : statusOf(404, 'NotFound'));
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    return void response.end(JSON.stringify(answer.body ?? {}));
  };

  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sayAll = (line: string) => {
    for (const { response } of watchers) response.write(line);
  };
  const api: KubeApi = {
    access: {
      server: `http://127.0.0.1:${port}`,
      ca: null,
      serverName: null,
      client: null,
      token: null,
      namespace: null,
    },
    objects,
    asked,
    answerNext: (matching, answer) => void special.push({ matching, answer }),
    put: (path, object) => void put(path, object),
    watches: () => ({ begun, open: watchers.length }),
    cut() {
      for (const { response } of watchers) response.write('{"type":"MODI', () => response.destroy());
    },
    mute: () => {
      isMuted = true;
    },
    expire: () =>
      sayAll(`${JSON.stringify({ type: 'ERROR', object: { metadata: {}, code: 410, reason: 'Expired' } })}\n`),
    bookmark: () =>
      sayAll(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(++version) } } })}\n`),
    pageSize: 500,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return api;
}

const statusOf = (status: number, reason: string): Answer => ({
  status,
  body: { kind: 'Status', code: status, reason, message: reason },
});

/** `/api/v1/namespaces/n/pods/p` is in `/api/v1/namespaces/n/pods` and in `/api/v1/pods`. */
function collectionsOf(path: string): string[] {
  const own = path.slice(0, path.lastIndexOf('/'));
  return [own, own.replace(/\/namespaces\/[^/]+\//, '/')];
}

function isSelected(object: Json, selector: string): boolean {
  const wanted = selector === '' ? [] : selector.split(',').map((part) => part.split('='));
  return wanted.every(([name, value]) => object.metadata.labels?.[name!] === value);
}

function merge(into: Json, from: Json): Json {
  if (typeof into !== 'object' || typeof from !== 'object' || into === null || from === null || Array.isArray(from)) {
    return from;
  }
  const keys = new Set([...Object.keys(into), ...Object.keys(from)]);
  return Object.fromEntries(
    [...keys].map((key) => [key, key in from ? merge(into[key] ?? null, from[key]) : into[key]]),
  );
}
