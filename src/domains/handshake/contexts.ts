// Certificates ready for handshakes. A certificate is loaded when a visitor first asks for its name, so neither start-up
// time nor handshakes depend on the number of domains. The current certificate of a name is looked up at most once a
// second.
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Db } from '../../db/database.ts';
import { prepared } from '../../db/prepared.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { Recent } from '../../lib/recent.ts';
import type { Seal } from '../../lib/seal.ts';
import { subscribe } from '../../signals/signals.ts';
import type { Obtained } from '../authority.ts';
import { keyContext } from '../key-context.ts';

interface Entry {
  /** null: no domain has the name, or it has no certificate yet. */
  certificateId: string | null;
  context: SecureContext | null;
  checkedAt: number;
}

const checkEveryMs = 1000;
const maxContexts = 2000;
const maxUnknown = 10_000;

const selectCurrent = prepared((db) => db.selectFrom('domain').select('certificate_id').where('hostname', '=', ''));
const selectCertificate = prepared((db) =>
  db.selectFrom('certificate').select(['chain_pem', 'key_sealed']).where('id', '=', ''),
);

interface ContextParts {
  db: Db;
  seal: Seal;
  clock: Clock;
  log: Log;
  /** For names that are not domains, such as the addresses of environments. */
  otherwise(hostname: string): Promise<SecureContext | null>;
}

export class Contexts {
  readonly #parts: ContextParts;
  readonly #known = new Recent<Entry>(maxContexts);
  readonly #unknown = new Recent<Entry>(maxUnknown);
  readonly #loading = new Map<string, Promise<Entry>>();

  readonly #unsubscribe: () => void;

  constructor(parts: ContextParts) {
    this.#parts = parts;
    this.#unsubscribe = subscribe(parts.db, 'domains', (domains) => {
      for (const { hostname } of domains) this.#expire(hostname);
    });
  }

  stop(): void {
    this.#unsubscribe();
  }

  async contextFor(hostname: string): Promise<SecureContext | null> {
    const nowMs = this.#parts.clock.now();
    const entry = this.#known.get(hostname) ?? this.#unknown.get(hostname);
    if (entry && Math.abs(nowMs - entry.checkedAt) < checkEveryMs) return entry.context;
    let loading = this.#loading.get(hostname);
    if (!loading) {
      loading = this.#check(hostname, entry, nowMs).finally(() => this.#loading.delete(hostname));
      this.#loading.set(hostname, loading);
    }
    return (await loading).context;
  }

  /** Makes the next handshake look the certificate up. */
  #expire(hostname: string): void {
    const entry = this.#known.get(hostname);
    if (entry) entry.checkedAt = 0;
    this.#unknown.delete(hostname);
  }

  async #check(hostname: string, entry: Entry | undefined, nowMs: number): Promise<Entry> {
    try {
      const fresh = { ...(await this.#load(hostname, entry)), checkedAt: nowMs };
      (fresh.context ? this.#known : this.#unknown).set(hostname, fresh);
      (fresh.context ? this.#unknown : this.#known).delete(hostname);
      return fresh;
    } catch (error) {
      // While the database is unavailable, the last known certificate stays in use.
      if (!entry?.context) throw error;
      this.#parts.log.warn({ err: error, hostname }, 'failed to look up a certificate');
      entry.checkedAt = nowMs;
      return entry;
    }
  }

  async #load(hostname: string, entry: Entry | undefined): Promise<Omit<Entry, 'checkedAt'>> {
    const { db, seal, otherwise } = this.#parts;
    const [domain] = await selectCurrent(db, hostname);
    if (!domain) return { certificateId: null, context: await otherwise(hostname) };
    const certificateId = domain.certificate_id;
    if (certificateId === null) return { certificateId, context: null };
    if (entry?.context && entry.certificateId === certificateId) return { certificateId, context: entry.context };
    const [row] = await selectCertificate(db, certificateId);
    if (!row) return { certificateId, context: null };
    const keyPem = seal.open(row.key_sealed, keyContext(certificateId));
    return { certificateId, context: secureContext({ chainPem: row.chain_pem, keyPem }) };
  }
}

/** No client certificates are verified, so no roots are loaded. */
export const secureContext = ({ chainPem, keyPem }: Obtained): SecureContext =>
  createSecureContext({ cert: chainPem, key: keyPem, ca: [], minVersion: 'TLSv1.2' });
