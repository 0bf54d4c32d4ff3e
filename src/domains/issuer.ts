// Issues and renews certificates: finds domains that are due → leases each → gets a certificate, continuing the order
// in progress if there is one → stores it. The lease is extended in the meantime, and expires if the process dies.
import type { Db } from '../db/database.ts';
import type { DialectName } from '../db/dialect.ts';
import { insertEvent } from '../events/outbox.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import type { Loop, Loops } from '../lib/loops.ts';
import type { Seal } from '../lib/seal.ts';
import { subscribe } from '../signals/signals.ts';
import { type Authority, NotIssued, type Obtained, type OpenOrder } from './authority.ts';
import { newCertificate, orderKeyContext, readCertificate } from './certificate.ts';
import {
  CertificateLeaseLost,
  claimDue,
  extendLease,
  findFullCertificate,
  markCertificateless,
  markFailed,
  markProved,
  release,
  releaseAll,
  reschedule,
  saveOrder,
  saveTxtFound,
  storeCertificate,
} from './certificate-leases.ts';
import { askAgainMs, renewalMoment, retryDelayMs } from './certificate-renewal.ts';
import { lookUpRecord, type ResolveTxt } from './dns-checks.ts';
import { type CertificateRow, type DomainRow, presentDomain } from './domain-queries.ts';
import { recordToAdd } from './hostname.ts';

interface IssuerParts {
  db: Db;
  dialect: DialectName;
  seal: Seal;
  ids: IdSource;
  clock: Clock;
  log: Log;
  loops: Loops;
  /** Unique among the processes that share the database. */
  processId: string;
  authority: Authority;
  resolveTxt: ResolveTxt;
  random: () => number;
  urlOf(hostname: string): string;
}

const claimEveryMs = 2000;
/** How many certificates are issued at once. A domain that waits for its DNS does not count: silence holds up no other. */
const atOnce = 32;
/** How many domains of one account are worked on at once, those that wait for their DNS included. */
const atOnceEach = 4;
const leaseMs = 30_000;
const extendEveryMs = 10_000;
const maxMessageLength = 2000;

interface Running {
  accountId: string;
  waitsForDns: boolean;
  done: Promise<void>;
}

export class Issuer {
  readonly #parts: IssuerParts;
  readonly #running = new Set<Running>();
  readonly #stopping = new AbortController();
  #loop: Loop | null = null;
  #unsubscribe: (() => void) | null = null;
  #claims = 0;

  constructor(parts: IssuerParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { db, dialect, loops } = this.#parts;
    if (dialect === 'sqlite') await releaseAll(db);
    this.#loop = loops.start({ name: 'certificates', intervalMs: claimEveryMs, step: () => this.#claimDue() });
    this.#unsubscribe = subscribe(db, 'domains', () => this.#loop?.wake());
  }

  /** Releases the leases. Orders in progress stay saved, so another process can continue them. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#stopping.abort();
    await this.#loop?.stop();
    await this.#parts.authority.close();
    await Promise.all(Array.from(this.#running, ({ done }) => done));
  }

  async #claimDue(): Promise<void> {
    const { db, clock, processId } = this.#parts;
    const issuing = [...this.#running].filter(({ waitsForDns }) => !waitsForDns).length;
    const total = atOnce - issuing;
    if (total <= 0 || this.#stopping.signal.aborted) return;
    const owner = () => `${processId}.${++this.#claims}`;
    const ofAccount = new Map<string, number>();
    for (const { accountId } of this.#running) ofAccount.set(accountId, (ofAccount.get(accountId) ?? 0) + 1);
    const room = { total, each: atOnceEach, running: ofAccount };
    for (const row of await claimDue(db, owner, room, clock.now(), leaseMs)) {
      const running: Running = { accountId: row.account_id, waitsForDns: false, done: Promise.resolve() };
      this.#running.add(running);
      running.done = this.#process(row, running).finally(() => {
        this.#running.delete(running);
        this.#loop?.wake();
      });
    }
  }

  async #process(row: DomainRow, running: Running): Promise<void> {
    const { db, clock, log } = this.#parts;
    const lost = new AbortController();
    const beat = setInterval(
      () =>
        extendLease(db, row, clock.now(), leaseMs).catch(
          (error) => error instanceof CertificateLeaseLost && lost.abort(),
        ),
      extendEveryMs,
    );
    const signal = AbortSignal.any([this.#stopping.signal, lost.signal]);
    try {
      const current = await findFullCertificate(db, row.certificate_id);
      const isEarly = current !== null && row.renew_asked === 0 && clock.now() < current.renew_at;
      if (isEarly) await this.#askAdvice(row, current);
      else if (this.#parts.authority.signs(row)) await this.#store(row, await this.#obtain(row, current, signal));
      else await this.#settleUnsigned(row, current, running);
    } catch (error) {
      if (error instanceof CertificateLeaseLost || lost.signal.aborted) return;
      // Without a certificate it may be proved by its record all the same, and is routed then.
      if (this.#parts.authority.signs(row) && !this.#stopping.signal.aborted)
        await this.#isProved(row, running).catch(() => false);
      await (this.#stopping.signal.aborted ? release(db, row) : this.#fail(row, error)).catch((failed) =>
        // The domain is tried again when its lease expires.
        log.warn({ err: failed, hostname: row.hostname }, 'failed to write the outcome of a certificate request'),
      );
    } finally {
      clearInterval(beat);
    }
  }

  /** The local CA does not sign the name of the domain: it needs its proof, and then no more. */
  async #settleUnsigned(row: DomainRow, current: CertificateRow | null, running: Running): Promise<void> {
    const { db, clock } = this.#parts;
    if (!(await this.#isProved(row, running)))
      throw new NotIssued(`Not proved to be yours yet: add ${recordToAdd(row)}.`);
    if (current !== null) throw new NotIssued('The local CA does not sign names that someone can own.');
    await markCertificateless(db, row, clock.now());
  }

  async #isProved(row: DomainRow, running: Running): Promise<boolean> {
    if (row.proof !== null) return true;
    running.waitsForDns = true;
    this.#loop?.wake();
    const { isProved, found } = await lookUpRecord(row, this.#parts.resolveTxt).finally(() => {
      running.waitsForDns = false;
    });
    if (isProved) await markProved(this.#parts.db, row);
    else await saveTxtFound(this.#parts.db, row, found);
    return isProved;
  }

  #obtain(row: DomainRow, current: CertificateRow | null, signal: AbortSignal): Promise<Obtained> {
    const { db, seal, authority } = this.#parts;
    const context = orderKeyContext(row.id);
    const { order_url: url, order_key_sealed: sealed } = row;
    const canContinue = row.order_directory === authority.name && url !== null && sealed !== null;
    return authority.obtain({
      domain: row,
      current,
      order: canContinue ? { url, keyPem: seal.open(sealed, context) } : null,
      saveOrder: (order: OpenOrder | null) =>
        saveOrder(db, row, {
          order_directory: order && authority.name,
          order_url: order?.url ?? null,
          order_key_sealed: order && seal.seal(order.keyPem, context),
        }),
      signal,
    });
  }

  async #store(row: DomainRow, obtained: Obtained): Promise<void> {
    const { db, seal, ids, clock, log, authority, urlOf } = this.#parts;
    const facts = readCertificate(obtained, row.hostname);
    const nowMs = clock.now();
    const ariId = await authority.ariIdOf(obtained.chainPem).catch(() => null);
    const issued = { id: ids('crt'), domainId: row.id, obtained, facts, ariId };
    const certificate = newCertificate(issued, seal, nowMs);
    const first = row.certificate_id === null;
    await db.transaction().execute(async (tx) => {
      const saved = await storeCertificate(tx, row, certificate);
      if (first) return;
      const data = presentDomain(saved, certificate, urlOf);
      const { account_id: accountId, project_id: projectId } = saved;
      await insertEvent(tx, { ids, clock }, { type: 'domain.certificate_renewed', accountId, projectId, data });
    });
    log.info(
      { hostname: row.hostname, not_after: new Date(facts.not_after).toISOString(), first },
      'certificate stored',
    );
  }

  /** The renewal is not due yet; the authority may suggest an earlier time. */
  async #askAdvice(row: DomainRow, current: CertificateRow): Promise<void> {
    const { db, clock, log, random, authority } = this.#parts;
    const { ari_id, ari_ask_at } = current;
    if (ari_id === null || ari_ask_at === null || clock.now() < ari_ask_at) return reschedule(db, row, current);
    const advice = await authority.adviceOn(ari_id).catch((error) => {
      log.warn({ err: error, hostname: row.hostname }, 'failed to get renewal information');
      return null;
    });
    const renew_at = advice ? renewalMoment(current, advice.window, random()) : current.renew_at;
    const ask = { ari_ask_at: clock.now() + askAgainMs(advice?.retryAfterMs ?? null) };
    await reschedule(db, row, { ...current, renew_at, ...ask });
  }

  async #fail(row: DomainRow, error: unknown): Promise<void> {
    const { db, clock, log, random } = this.#parts;
    const nowMs = clock.now();
    const retryAfterMs = error instanceof NotIssued ? error.retryAfterMs : null;
    const nextAttemptAt = nowMs + retryDelayMs(row.failures + 1, retryAfterMs, random());
    const waitUntil = retryAfterMs === null ? null : nextAttemptAt;
    const message = messageOf(error);
    if (error instanceof NotIssued) log.warn({ hostname: row.hostname, reason: message }, 'certificate not issued');
    else log.error({ err: error, hostname: row.hostname }, 'failed to get a certificate');
    await markFailed(db, row, { message, nextAttemptAt, waitUntil, nowMs });
  }
}

/** The message that users see. Internal errors go to the log only. */
function messageOf(error: unknown): string {
  if (!(error instanceof NotIssued)) return 'Internal error; the log of the service has the details.';
  return error.message.toWellFormed().slice(0, maxMessageLength);
}
