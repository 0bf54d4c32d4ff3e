import type { Seal } from '../lib/seal.ts';
import { askAgainMs } from './acme/ari.ts';
import type { Obtained } from './authority.ts';
import { keyContext } from './key-context.ts';
import type { CertificateRow } from './queries.ts';
import type { CertificateFacts } from './read-certificate.ts';
import { firstRenewAt } from './retry.ts';

interface NewCertificate {
  id: string;
  domainId: string;
  obtained: Obtained;
  facts: CertificateFacts;
  ariId: string | null;
}

/** The row of a certificate that was just issued. Its key is sealed. */
export function newCertificate(
  { id, domainId, obtained, facts, ariId }: NewCertificate,
  seal: Seal,
  nowMs: number,
): CertificateRow {
  return {
    id,
    domain_id: domainId,
    ...facts,
    renew_at: firstRenewAt(facts.not_before, facts.not_after, nowMs),
    chain_pem: obtained.chainPem,
    key_sealed: seal.seal(obtained.keyPem, keyContext(id)),
    ari_id: ariId,
    ari_ask_at: ariId === null ? null : nowMs + askAgainMs(null),
    created_at: nowMs,
  };
}
