// The agent, as a worker sees it: there for most of the time. A lost connection is opened again for as long as it takes.
import { connect, type Socket } from 'node:net';
import type { CertificateSource, StoredCertificate } from '../data-plane.ts';
import { type FromWorker, onMessages, sendMessage, type ToWorker } from './agent-protocol.ts';
import type { DiskCertificates } from './routing-files.ts';

/** To look for a socket costs next to nothing, and visitors wait while a service starts. */
const retryMs = 25;
/** How long before it is looked for less often. */
const eagerMs = 5000;
const laterRetryMs = 500;
/** Longer than a look-up in the database takes, even a slow one. */
const answerWithinMs = 5000;

class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

type Ask =
  | { type: 'certificate'; hostname: string; known: string | null }
  | { type: 'challenge'; hostname: string; token: string };
type Answer = (ToWorker & { type: 'answer' })['answer'];
type Notice = Exclude<ToWorker, { type: 'answer' | 'no-answer' | 'ping' }>;

interface LinkOptions {
  path: string;
  hello(): FromWorker & { type: 'hello' };
  onMessage(message: Notice): void;
  onConnected(): void;
  onLost(): void;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout;
}

export class AgentLink {
  readonly #options: LinkOptions;
  readonly #waiting = new Map<number, Waiting>();
  #socket: Socket | null = null;
  #isConnected = false;
  #asked = 0;
  #lostAt = performance.now();
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  start(): void {
    const socket = connect(this.#options.path);
    this.#socket = socket;
    socket.on('error', () => {}); // a close follows
    socket.once('connect', () => {
      this.#isConnected = true;
      sendMessage(socket, this.#options.hello());
      this.#options.onConnected();
    });
    onMessages<ToWorker>(socket, (message) => this.#handle(message));
    socket.once('close', () => this.#lose());
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** False: there is no agent, and nothing was sent. */
  send(message: FromWorker): boolean {
    if (!this.#isConnected) return false;
    sendMessage(this.#socket!, message);
    return true;
  }

  /** Rejects with NoAnswer where the agent is away, takes too long, or does not know. */
  ask(question: Ask): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const ask = ++this.#asked;
      const timer = setTimeout(() => this.#fail(ask), answerWithinMs);
      this.#waiting.set(ask, { resolve, reject, timer });
      if (!this.send({ ...question, ask })) this.#fail(ask);
    });
  }

  /** Sends what is left, and connects no more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    const socket = this.#socket;
    if (!socket || socket.destroyed) return;
    await new Promise<void>((resolve) => {
      socket.once('close', () => resolve());
      if (this.#isConnected) socket.end(() => socket.destroy());
      else socket.destroy();
    });
  }

  #handle(message: ToWorker): void {
    switch (message.type) {
      case 'ping':
        this.send({ type: 'pong' });
        break;
      case 'no-answer':
        this.#fail(message.ask);
        break;
      case 'answer':
        this.#take(message.ask)?.resolve(message.answer);
        break;
      default:
        this.#options.onMessage(message);
    }
  }

  #take(ask: number): Waiting | undefined {
    const waiting = this.#waiting.get(ask);
    this.#waiting.delete(ask);
    clearTimeout(waiting?.timer);
    return waiting;
  }

  #fail(ask: number): void {
    this.#take(ask)?.reject(new NoAnswer('the agent gives no answer'));
  }

  #lose(): void {
    const wasConnected = this.#isConnected;
    this.#isConnected = false;
    for (const ask of this.#waiting.keys()) this.#fail(ask);
    if (wasConnected) {
      this.#lostAt = performance.now();
      this.#options.onLost();
    }
    if (this.#stopped) return;
    const waitMs = performance.now() - this.#lostAt < eagerMs ? retryMs : laterRetryMs;
    this.#timer = setTimeout(() => this.start(), waitMs);
  }
}

/**
 * Certificates of a worker: from disk where it knows none, so that a start without an agent serves them; afterwards
 * from the agent.
 */
export function linkCertificates(link: AgentLink, disk: DiskCertificates): CertificateSource {
  return {
    async find(hostname, known) {
      try {
        return (await link.ask({ type: 'certificate', hostname, known })) as StoredCertificate | 'current' | null;
      } catch (error) {
        if (!(error instanceof NoAnswer) || known !== null) throw error;
        return disk.read(hostname);
      }
    },
    async answerChallenge(hostname, token) {
      return (await link.ask({ type: 'challenge', hostname, token })) as string | null;
    },
  };
}
