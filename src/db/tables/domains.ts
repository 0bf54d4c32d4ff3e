// Domains and certificates.
import type { DomainProof, DomainState } from '../../contract/domains.ts';

export interface DomainTables {
  domain: {
    id: string;
    account_id: string;
    project_id: string;
    environment: string;
    /** In ASCII; unique. */
    hostname: string;
    state: DomainState;
    /** null: nothing shows yet that the account may use the hostname, so it is not routed. */
    proof: DomainProof | null;
    /** The certificate that it serves. */
    certificate_id: string | null;
    last_error: string | null;
    /** Consecutive failures. */
    failures: number;
    /** When the issuer processes it next; null: never. */
    next_attempt_at: number | null;
    /** The certificate authority asked us to wait until then. */
    wait_until: number | null;
    /** 1: a user asked for an early renewal. */
    renew_asked: number;
    /** The claim that holds the lease. Only its holder can write the outcome. */
    lease_owner: string | null;
    /** 0: not leased. */
    lease_until: number;
    /** The order in progress at a certificate authority, and the key of its certificate. */
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
    /** Its identifier in renewal information, and when to ask for that again; null: the authority offers none. */
    ari_id: string | null;
    ari_ask_at: number | null;
    created_at: number;
  };
  acme_account: { directory: string; url: string | null; key_sealed: string };
  /** Responses to http-01 challenges. */
  acme_challenge: { token: string; hostname: string; key_authorization: string; created_at: number };
}
