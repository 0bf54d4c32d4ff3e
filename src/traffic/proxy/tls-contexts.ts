// Certificates ready for handshakes. A certificate is loaded when a visitor first asks for its name, so neither start-up
// time nor handshakes depend on the number of domains. Where a certificate is known, a handshake does not wait for the
// question whether it is still the current one, which is asked at most once a second; it waits a moment only where a
// change was announced.
import { createSecureContext, type SecureContext } from 'node:tls';
import { LruCache } from '../../lib/bounded-cache.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { CertificateSource, StoredCertificate } from '../data-plane.ts';
import type { Certificates } from './tls-listener.ts';

interface Entry {
  /** null: no domain has the name, or it has no certificate yet. */
  id: string | null;
  context: SecureContext | null;
  checkedAt: number;
  /** A change was announced since. */
  expired: boolean;
}

const checkEveryMs = 1000;
const waitForNewMs = 250;
const maxContexts = 2000;
const maxUnknown = 10_000;

interface ContextParts {
  source: CertificateSource;
  clock: Clock;
  log: Log;
}

export class TlsContexts implements Certificates {
  readonly #parts: ContextParts;
  readonly #known = new LruCache<Entry>(maxContexts);
  readonly #unknown = new LruCache<Entry>(maxUnknown);
  readonly #checking = new Map<string, Promise<Entry>>();

  constructor(parts: ContextParts) {
    this.#parts = parts;
  }

  answerChallenge(hostname: string, token: string): Promise<string | null> {
    return this.#parts.source.answerChallenge(hostname, token);
  }

  async contextFor(hostname: string): Promise<SecureContext | null> {
    const nowMs = this.#parts.clock.now();
    const entry = this.#known.get(hostname) ?? this.#unknown.get(hostname);
    if (entry && !entry.expired && Math.abs(nowMs - entry.checkedAt) < checkEveryMs) return entry.context;
    const wasAnnounced = entry?.expired;
    const checking = this.#check(hostname, entry, nowMs);
    if (!entry?.context) return (await checking).context;
    if (!wasAnnounced) return entry.context;
    const { context } = await Promise.race([checking, after(waitForNewMs, entry)]);
    return context;
  }

  /** The next handshakes look these names up; null: all. */
  expire(names: string[] | null): void {
    if (names === null) {
      for (const entry of this.#known.values()) entry.expired = true;
      this.#unknown.clear();
      return;
    }
    for (const name of names) {
      const entry = this.#known.get(name);
      if (entry) entry.expired = true;
      this.#unknown.delete(name);
    }
  }

  #check(hostname: string, entry: Entry | undefined, nowMs: number): Promise<Entry> {
    const running = this.#checking.get(hostname);
    if (running) return running;
    const checking = this.#load(hostname, entry, nowMs).finally(() => this.#checking.delete(hostname));
    checking.catch(() => {}); // callers that wait for it get the error
    this.#checking.set(hostname, checking);
    return checking;
  }

  async #load(hostname: string, entry: Entry | undefined, nowMs: number): Promise<Entry> {
    const { source, log } = this.#parts;
    if (entry) entry.expired = false; // what is announced from here on is looked up again
    try {
      const found = await source.find(hostname, entry?.id ?? null);
      if (found === 'current' && entry) {
        entry.checkedAt = nowMs;
        return entry;
      }
      const stored = found === 'current' ? null : found;
      const context = stored && secureContext(stored);
      const loaded = { id: stored?.id ?? null, context, checkedAt: nowMs, expired: entry?.expired ?? false };
      (context ? this.#known : this.#unknown).set(hostname, loaded);
      (context ? this.#unknown : this.#known).delete(hostname);
      return loaded;
    } catch (error) {
      // While the source does not answer, the last known certificate stays in use.
      if (!entry?.context) throw error;
      log.warn({ err: error, hostname }, 'failed to look up a certificate');
      entry.checkedAt = nowMs;
      return entry;
    }
  }
}

const after = <T>(ms: number, value: T): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms).unref());

/** No client certificates are verified, so no roots are loaded. */
const secureContext = ({ chainPem, keyPem }: StoredCertificate): SecureContext =>
  createSecureContext({ cert: chainPem, key: keyPem, ca: [], minVersion: 'TLSv1.2' });
