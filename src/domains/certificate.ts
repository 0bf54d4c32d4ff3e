// A certificate that was just issued: read, checked against its hostname and key, and made a row with its key sealed.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { Seal } from '../lib/seal.ts';
import { NotIssued, type Obtained } from './authority.ts';
import { askAgainMs, firstRenewAt } from './certificate-renewal.ts';
import type { CertificateRow } from './domain-queries.ts';

type CertificateFacts = Pick<CertificateRow, 'issuer' | 'serial' | 'not_before' | 'not_after' | 'fingerprint_sha256'>;

/** Throws NotIssued if the certificate is not for this hostname and key. */
export function readCertificate({ chainPem, keyPem }: Obtained, hostname: string): CertificateFacts {
  const certificate = new X509Certificate(chainPem);
  if (!certificate.checkHost(hostname, { subject: 'never' }))
    throw new NotIssued('The certificate is for a different hostname.');
  if (!certificate.checkPrivateKey(createPrivateKey(keyPem)))
    throw new NotIssued('The certificate is for a different key.');
  return {
    issuer: inOneLine(certificate.issuer),
    serial: certificate.serialNumber.toLowerCase(),
    not_before: certificate.validFromDate.getTime(),
    not_after: certificate.validToDate.getTime(),
    fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}

/** A distinguished name on one line, its most specific part first. */
function inOneLine(name: string): string {
  return name.split('\n').reverse().join(', ').slice(0, 500);
}

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

/** A context binds a sealed key to its row: copied to another row, it cannot be opened. */
export const keyContext = (certificateId: string): string => `certificate key ${certificateId}`;
export const orderKeyContext = (domainId: string): string => `order key ${domainId}`;
export const accountKeyContext = (directory: string): string => `acme account key ${directory}`;
