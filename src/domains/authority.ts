// What the issuer asks of whoever signs certificates: an ACME directory, or the local CA.
import type { CertificateRow, DomainRow } from './queries.ts';

export interface Obtained {
  /** The certificate first, then what leads from it to a root. */
  chainPem: string;
  keyPem: string;
}

/** An order under way: kept with the domain, so that a crash costs no second one. */
export interface OpenOrder {
  url: string;
  keyPem: string;
}

export interface Work {
  domain: DomainRow;
  /** What it serves now. */
  current: CertificateRow | null;
  order: OpenOrder | null;
  saveOrder(order: OpenOrder | null): Promise<void>;
  /** The process stops, or somebody else has the domain now. */
  signal: AbortSignal;
}

export interface RenewalAdvice {
  /** When the authority wants it renewed, by its own document; null: it has no opinion. */
  window: { start: number; end: number } | null;
  /** How long not to ask again. */
  askedMs: number | null;
}

export interface Authority {
  /** Orders under way are of one authority only. */
  name: string;
  obtain(work: Work): Promise<Obtained>;
  /** The name of the certificate for renewal information; null: the authority has none. */
  ariIdOf(chainPem: string): Promise<string | null>;
  adviceOn(ariId: string): Promise<RenewalAdvice>;
  /** Whatever waits for an answer stops waiting. */
  close(): Promise<void>;
}

/** No certificate was given, and people can read why. */
export class NotIssued extends Error {
  /** For how long the authority asked not to be asked; null: it did not. */
  readonly askedMs: number | null;

  constructor(message: string, askedMs: number | null = null, cause?: unknown) {
    super(message, { cause });
    this.askedMs = askedMs;
  }
}
