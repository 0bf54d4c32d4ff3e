// Certificates from a test authority, which exists as long as the process.
import { randomBytes } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const newKeys = () => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<CryptoKeyPair>;
const newSerial = () => `4${randomBytes(8).toString('hex').slice(1)}`;
const valid = () => ({ notBefore: new Date(Date.now() - 3600_000), notAfter: new Date(Date.now() + 3600_000) });

const rootKeys = await newKeys();
const root = await x509.X509CertificateGenerator.createSelfSigned({
  ...valid(),
  serialNumber: newSerial(),
  name: 'CN=Test root',
  signingAlgorithm: algorithm,
  keys: rootKeys,
  extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
});
/** What the clients of a test trust. */
export const ca = root.toString('pem');

export interface Issued {
  certificate: string;
  key: string;
  serial: string;
}

/** From no authority. */
export async function selfSigned(): Promise<Omit<Issued, 'serial'>> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...valid(),
    serialNumber: newSerial(),
    name: 'CN=Nobody',
    signingAlgorithm: algorithm,
    keys,
  });
  return { certificate: certificate.toString('pem'), key: await pemOf(keys) };
}

const pemOf = async ({ privateKey }: CryptoKeyPair): Promise<string> =>
  x509.PemConverter.encode(await crypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');

export async function issue(...names: string[]): Promise<Issued> {
  const keys = await newKeys();
  const leaf = await x509.X509CertificateGenerator.create({
    ...valid(),
    serialNumber: newSerial(),
    subject: `CN=${names[0]}`,
    issuer: root.subject,
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey: rootKeys.privateKey,
    extensions: [new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns' as const, value })))],
  });
  return {
    certificate: leaf.toString('pem'),
    key: await pemOf(keys),
    serial: leaf.serialNumber.toUpperCase(),
  };
}
