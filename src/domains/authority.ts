// What the issuer needs from a certificate authority: an ACME directory or the local CA.
import type { CertificateRow, DomainRow } from './domain-queries.ts';

export interface Obtained {
  /** The certificate first, then the intermediates. */
  chainPem: string;
  keyPem: string;
}

/** An order in progress. It is saved with the domain, so that a process continues it after a crash. */
export interface OpenOrder {
  url: string;
  keyPem: string;
}

export interface CertificateRequest {
  domain: DomainRow;
  /** The certificate that it replaces. */
  current: CertificateRow | null;
  order: OpenOrder | null;
  saveOrder(order: OpenOrder | null): Promise<void>;
  /** Aborted when the process stops or has lost the lease of the domain. */
  signal: AbortSignal;
}

interface RenewalAdvice {
  /** When the authority suggests to renew; null: it suggests nothing. */
  window: { start: number; end: number } | null;
  retryAfterMs: number | null;
}

export interface Authority {
  /** Identifies the authority: an order can only be continued where it was created. */
  name: string;
  /** Whether it gives certificates for such names at all. */
  signs(domain: DomainRow): boolean;
  obtain(request: CertificateRequest): Promise<Obtained>;
  /** The certificate's identifier in renewal information; null: the authority offers none. */
  ariIdOf(chainPem: string): Promise<string | null>;
  adviceOn(ariId: string): Promise<RenewalAdvice>;
  /** Cancels requests that are waiting for a response. */
  close(): Promise<void>;
}

/** No certificate was issued. The message is shown to users. */
export class NotIssued extends Error {
  /** How long the authority asked us to wait; null: it did not ask. */
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null, cause?: unknown) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}
