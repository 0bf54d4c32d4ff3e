// What HAProxy needs for TLS. It chooses a certificate by the name of the handshake from a list, which changes at run
// time; each certificate is a file that only its owner can read. Ticket keys are in a file too. Challenges it passes on
// to this process.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import { createServer } from '../../lib/node-http.ts';
import type { CertificateSource, StoredCertificate } from '../data-plane.ts';
import { hostNameOf } from '../proxy/headers.ts';
import { type HaproxyFiles, readOrEmpty, removeFile, replaceFile } from './haproxy-files.ts';
import { ask, HaproxyRefused } from './haproxy-socket.ts';

/** Deleted now, or before. */
const isGone = /' deleted|does ?n['o]t exist|can't be found|is empty/;

export class HaproxyCertificates {
  readonly #files: HaproxyFiles;
  readonly #source: CertificateSource;
  readonly #log: Log;
  /** By host name: the id of its certificate. */
  readonly #served = new Map<string, string>();
  readonly #queue = new Set<string>();
  /** They could not be given to HAProxy, and wait for the next try. */
  readonly #failed = new Set<string>();
  /** Files that HAProxy serves; null: it has not been asked since it was started or found. */
  #listed: Set<string> | null = null;
  #working: Promise<void> | null = null;
  #isRunning = false;

  constructor(files: HaproxyFiles, source: CertificateSource, log: Log) {
    this.#files = files;
    this.#source = source;
    this.#log = log;
  }

  /** Goes on with the list on disk. Which certificate a name has there is not known, so the current one replaces it. */
  async open(): Promise<void> {
    for (const line of (await readOrEmpty(this.#files.certificateList)).split('\n')) {
      const name = line.split(' ')[1];
      if (name !== undefined) this.#served.set(name, '');
    }
  }

  attach(): void {
    this.#isRunning = true;
    this.#listed = null;
    this.#work();
  }

  /** Looks up the current certificates of these names, soon. */
  refresh(names: Iterable<string>): void {
    for (const name of names) this.#queue.add(name);
    this.#work();
  }

  refreshAll(): void {
    this.refresh(this.#served.keys());
  }

  /** Tries again what failed. */
  retry(): void {
    if (this.#failed.size > 0) this.refresh(this.#failed);
  }

  #work(): void {
    if (!this.#isRunning || this.#working !== null || this.#queue.size === 0) return;
    this.#working = this.#drain().finally(() => {
      this.#working = null;
    });
  }

  async #drain(): Promise<void> {
    for (const name of this.#queue) {
      this.#queue.delete(name);
      try {
        await this.#serveCurrent(name);
        this.#failed.delete(name);
      } catch (error) {
        if (!this.#failed.has(name))
          this.#log.warn(
            { err: error, hostName: name },
            'a certificate could not be given to HAProxy; it is tried again',
          );
        this.#failed.add(name);
      }
    }
  }

  async #serveCurrent(name: string): Promise<void> {
    const known = this.#served.get(name);
    const found = await this.#source.find(name, known || null);
    if (found === 'current') return;
    if (found === null) {
      if (known !== undefined || this.#failed.has(name)) await this.#remove(name);
      return;
    }
    await this.#install(name, found);
    this.#served.set(name, found.id);
  }

  /** Names come from certificates and may be wildcards, so they are no file names. */
  #fileOf(name: string): string {
    return join(this.#files.certificates, `${createHash('sha256').update(name).digest('hex').slice(0, 32)}.pem`);
  }

  async #install(name: string, { chainPem, keyPem }: StoredCertificate): Promise<void> {
    const { adminSocket, certificateList } = this.#files;
    this.#listed ??= await this.#readListed();
    const file = this.#fileOf(name);
    const pem = `${chainPem.trim()}\n${keyPem.trim()}`.replace(/\n{2,}/g, '\n');
    await replaceFile(file, `${pem}\n`);
    const isListed = this.#listed.has(file);
    if (!isListed) await this.#do(adminSocket, `new ssl cert ${file}`, /new empty certificate|already exists/i);
    await this.#set(file, pem);
    await this.#do(adminSocket, `commit ssl cert ${file}`, /success/i);
    if (isListed) return;
    this.#served.set(name, '');
    await this.#writeList();
    await this.#do(adminSocket, `add ssl crt-list ${certificateList} <<\n${file} ${name}\n`, /success/i);
    this.#listed.add(file);
  }

  /**
   * HAProxy has one transaction at a time: where a process was killed between this and the commit, that is about the file
   * it was about, whatever this one names.
   */
  async #set(file: string, pem: string): Promise<void> {
    const { adminSocket } = this.#files;
    const command = `set ssl cert ${file} <<\n${pem}\n`;
    for (let isAgain = false; ; isAgain = true) {
      const answer = await ask(adminSocket, command);
      const [, about] = /transaction \w+ for certificate (\S+)!/i.exec(answer) ?? [];
      if (about === file) return;
      if (about === undefined || isAgain) throw new HaproxyRefused(command, answer);
      await this.#do(adminSocket, `abort ssl cert ${about}`, /aborted/i);
    }
  }

  async #remove(name: string): Promise<void> {
    const { adminSocket, certificateList } = this.#files;
    const file = this.#fileOf(name);
    this.#served.delete(name);
    this.#listed?.delete(file);
    await this.#writeList();
    await this.#do(adminSocket, `del ssl crt-list ${certificateList} ${file}`, isGone);
    await this.#do(adminSocket, `del ssl cert ${file}`, isGone);
    await removeFile(file);
  }

  /** The files of the list as HAProxy has it: one that was killed may have written more to disk than it had said to HAProxy. */
  async #readListed(): Promise<Set<string>> {
    const lines = (await ask(this.#files.adminSocket, `show ssl crt-list ${this.#files.certificateList}`)).split('\n');
    return new Set(lines.map((line) => line.split(' ')[0]!).filter((file) => file.endsWith('.pem')));
  }

  #writeList(): Promise<void> {
    const lines = [...this.#served.keys()].map((name) => `${this.#fileOf(name)} ${name}\n`);
    return replaceFile(this.#files.certificateList, lines.join(''));
  }

  async #do(socket: string, command: string, success: RegExp): Promise<void> {
    const answer = await ask(socket, command);
    if (!success.test(answer)) throw new HaproxyRefused(command, answer);
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#queue.clear();
    await this.#working;
  }
}

/** HAProxy wants as many ticket keys as it remembers: the last one encrypts, the others still decrypt. */
const rememberedKeys = 3;

export async function ensureTicketKeys(path: string): Promise<void> {
  if ((await readOrEmpty(path)) !== '') return;
  const keys = Array.from({ length: rememberedKeys }, () => randomBytes(48).toString('base64'));
  await replaceFile(path, `${keys.join('\n')}\n`);
}

/** Gives the command that tells a running HAProxy; null: it is the file's already. */
export async function writeTicketKey(path: string, key: Buffer): Promise<string | null> {
  const text = key.toString('base64');
  const keys = (await readOrEmpty(path)).trim().split('\n');
  if (keys.includes(text)) return null;
  await replaceFile(path, `${[...keys.slice(1 - rememberedKeys), text].join('\n')}\n`);
  return `set ssl tls-key ${path} ${text}`;
}

const challengeFolder = '/.well-known/acme-challenge/';

/** Answers http-01 challenges (RFC 8555, 8.3), which HAProxy passes on to this process. */
export async function startChallengeResponder(
  socketPath: string,
  source: CertificateSource | null,
  log: Log,
): Promise<{ stop(): Promise<void> }> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    const text = await source
      ?.answerChallenge(hostNameOf(request.headers.host ?? ''), (request.url ?? '').slice(challengeFolder.length))
      .catch((error: unknown) => {
        log.warn({ err: error }, 'a challenge could not be looked up');
        return null;
      });
    const status = typeof text === 'string' ? 200 : 404;
    const body = text ?? 'there is no such challenge\n';
    response.writeHead(status, {
      'content-type': 'application/octet-stream',
      'cache-control': 'no-store',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  };
  const server = createServer((request, response) => void respond(request, response));
  await rm(socketPath, { force: true });
  server.listen({ path: socketPath, readableAll: false, writableAll: false });
  await once(server, 'listening');
  return {
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
