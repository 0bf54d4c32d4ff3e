// The Docker Engine API over a socket, TCP or TLS: requests and what their answers look like, as far as it is used here.
// Each request uses a connection of its own, so that none meets a dead connection after the engine restarted.
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { Agent, request as requestPlain } from '../../lib/node-http.ts';
import type { Connection } from './docker-address.ts';

/** Certificates for an engine that is reached over TLS. */
export interface ClientCertificates {
  ca: Buffer;
  cert: Buffer;
  key: Buffer;
}

export interface DockerRequest {
  /** What is undefined is left out; lists and objects are sent as JSON, as Docker wants its filters. */
  query?: Record<string, string | number | boolean | object | undefined>;
  /** JSON, or the bytes of a tar archive. */
  body?: object | Readable;
  /** For the registry that the engine is to ask. */
  login?: object;
  signal?: AbortSignal;
}

type Method = 'GET' | 'POST' | 'DELETE';

export interface DockerApi {
  /** The answer, parsed; null where it has no body. */
  request<T = null>(method: Method, path: string, asked?: DockerRequest): Promise<T>;
  /** The body of the answer as it comes. */
  stream(method: Method, path: string, asked?: DockerRequest): Promise<Readable>;
  /** Cuts off what is under way. */
  close(): void;
}

/** The engine responded with an error. Its message is that of the engine. */
export class DockerError extends Error {
  readonly statusCode: number;

  constructor(statusCode: number, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/** What came was not an answer of an engine. It has a code, as connections that fail have. */
class AnswerError extends Error {
  readonly code = 'EBADANSWER';
}

const maxAnswerBytes = 256 * 1024 * 1024;
const maxErrorBytes = 256 * 1024;

export async function openDockerApi(connection: Connection, certificates?: ClientCertificates): Promise<DockerApi> {
  const https = certificates ? await import('node:https') : null;
  const agent = https ? new https.Agent({ keepAlive: false }) : new Agent({ keepAlive: false });
  const request = https?.request ?? requestPlain;

  const stream: DockerApi['stream'] = async (method, path, { query = {}, body, login, signal } = {}) => {
    const isBytes = body instanceof Readable;
    const sent = request({
      ...connection,
      ...certificates,
      agent,
      method,
      path: path + queryText(query),
      headers: {
        ...(body && { 'content-type': isBytes ? 'application/x-tar' : 'application/json' }),
        ...(login && { 'x-registry-auth': base64url(JSON.stringify(login)) }),
      },
      ...(signal && { signal }),
    });
    const answer = await send(sent, body && !isBytes ? JSON.stringify(body) : body);
    if (answer.statusCode! >= 200 && answer.statusCode! < 300) return answer;
    throw new DockerError(
      answer.statusCode!,
      messageIn(await readText(answer, maxErrorBytes)) || answer.statusMessage!,
    );
  };

  return {
    stream,
    async request(method, path, asked) {
      const text = await readText(await stream(method, path, asked), maxAnswerBytes);
      try {
        return text === '' ? null : JSON.parse(text);
      } catch (error) {
        throw new AnswerError(`${method} ${path} was not answered with JSON`, { cause: error });
      }
    },
    close: () => agent.destroy(),
  };
}

async function send(request: ClientRequest, body: string | Readable | undefined): Promise<IncomingMessage> {
  if (body instanceof Readable) {
    body.on('error', (error) => request.destroy(error));
    body.pipe(request);
  } else request.end(body);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  // From here on errors are those of the answer.
  request.on('error', () => {});
  return answer;
}

function queryText(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/** With padding, which the engine insists on. */
const base64url = (text: string): string =>
  Buffer.from(text).toString('base64').replaceAll('+', '-').replaceAll('/', '_');

/** Of an error of the engine; whatever else answered is quoted. */
function messageIn(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    if (typeof message === 'string') return message.trim();
  } catch {}
  return text.trim().slice(0, 500);
}

async function readText(body: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new AnswerError(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Of `GET /containers/json`. */
export interface ContainerInfo {
  Id: string;
  Image: string;
  ImageID: string;
  Created: number;
  State: string;
  Status: string;
  Labels: Record<string, string>;
  Ports?: { Type: string; PrivatePort: number; PublicPort?: number }[];
}

/** Of `GET /containers/{id}/json`. */
export interface ContainerInspectInfo {
  Id: string;
  Image: string;
  State: {
    Status: string;
    Running: boolean;
    OOMKilled: boolean;
    Pid: number;
    ExitCode: number;
    FinishedAt: string;
  };
  Config: { Labels: Record<string, string> };
  HostConfig: { Memory?: number };
}

/** For `POST /containers/create`; its name is in the query. */
export interface ContainerConfig {
  Image: string;
  Labels?: Record<string, string>;
  Env?: string[];
  ExposedPorts?: Record<string, object>;
  HostConfig?: {
    Memory?: number;
    MemorySwap?: number;
    NanoCpus?: number;
    PidsLimit?: number;
    NetworkMode?: string;
    SecurityOpt?: string[];
    CapDrop?: string[];
    Init?: boolean;
    RestartPolicy?: { Name: string };
    PortBindings?: Record<string, { HostIp: string; HostPort: string }[]>;
    LogConfig?: { Type: string; Config: Record<string, string> };
    StorageOpt?: Record<string, string>;
  };
}

/** Of `GET /networks` and `GET /networks/{id}`. */
export interface NetworkInfo {
  Id: string;
  Name: string;
  Created: string;
  Labels?: Record<string, string> | null;
  IPAM?: { Config?: { Subnet?: string }[] | null };
}

/** Of `GET /images/json`. */
export interface ImageInfo {
  Id: string;
  RepoTags?: string[] | null;
  RepoDigests?: string[] | null;
  Size: number;
  /** -1: not computed. */
  SharedSize?: number;
}

/** Of `GET /images/{name}/json`. */
export interface ImageInspectInfo {
  Id: string;
  RepoDigests?: string[];
  Config?: { ExposedPorts?: Record<string, object> | null } | null;
}
