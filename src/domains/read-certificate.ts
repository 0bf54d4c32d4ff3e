// What a certificate says of itself.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { NotIssued, type Obtained } from './authority.ts';
import type { CertificateRow } from './queries.ts';

export type CertificateFacts = Pick<
  CertificateRow,
  'issuer' | 'serial' | 'not_before' | 'not_after' | 'fingerprint_sha256'
>;

/** Throws where it is not for this name and key: such a one would serve nobody. */
export function readCertificate({ chainPem, keyPem }: Obtained, hostname: string): CertificateFacts {
  const certificate = new X509Certificate(chainPem);
  if (!certificate.checkHost(hostname, { subject: 'never' }))
    throw new NotIssued('The certificate is for another name.');
  if (!certificate.checkPrivateKey(createPrivateKey(keyPem)))
    throw new NotIssued('The certificate is for another key.');
  return {
    issuer: inOneLine(certificate.issuer),
    serial: certificate.serialNumber.toLowerCase(),
    not_before: certificate.validFromDate.getTime(),
    not_after: certificate.validToDate.getTime(),
    fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}

/** The lines of a distinguished name, in the order people read it. */
function inOneLine(name: string): string {
  return name.split('\n').reverse().join(', ').slice(0, 500);
}
