// Domains and certificates.
import type { DomainState } from '../../contract/domains.ts';

export interface DomainTables {
  domain: {
    id: string;
    account_id: string;
    project_id: string;
    environment: string;
    /** In ASCII, unique in the service. */
    hostname: string;
    state: DomainState;
    /** What it serves. */
    certificate_id: string | null;
    last_error: string | null;
    /** One after the other, since the last success. */
    failures: number;
    /** When its certificate is to be looked after; null: never. */
    next_attempt_at: number | null;
    /** The certificate authority asked not to be asked before. */
    wait_until: number | null;
    /** 1: somebody asked for a new certificate before its time. */
    renew_asked: number;
    /** Who is looking after it. Whoever has lost the lease can no longer say how it went. */
    lease_owner: string | null;
    /** When it may be taken from them; 0: nobody is. */
    lease_until: number;
    /** An order under way at a certificate authority, and the key of the certificate it is for. */
    order_directory: string | null;
    order_url: string | null;
    order_key_sealed: string | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
  certificate: {
    id: string;
    domain_id: string;
    issuer: string;
    serial: string;
    not_before: number;
    not_after: number;
    renew_at: number;
    fingerprint_sha256: string;
    chain_pem: string;
    key_sealed: string;
    /** Its name for renewal information, and when to ask for that again; null: the authority has none. */
    ari_id: string | null;
    ari_ask_at: number | null;
    created_at: number;
  };
  acme_account: { directory: string; url: string | null; key_sealed: string };
  /** What the router answers a certificate authority that checks a name. */
  acme_challenge: { token: string; hostname: string; key_authorization: string; created_at: number };
}
