// The built-in certificate authority, used if no ACME directory is set. Its root is created on first use; all processes
// that share the database share it.
import { randomBytes } from 'node:crypto';
import type { Db } from '../db/database.ts';
import { isHostTaken } from '../environments/environment-queries.ts';
import { LruCache } from '../lib/bounded-cache.ts';
import type { Clock } from '../lib/clock.ts';
import type { Seal } from '../lib/seal.ts';
import type { StoredCertificate } from '../traffic/data-plane.ts';
import type { Authority, Obtained } from './authority.ts';
import { readCertificate } from './certificate.ts';
import { renewAt } from './certificate-renewal.ts';
import { mayLocalCaSign, type OwnershipRules } from './hostname.ts';

interface LocalCa extends Authority {
  /** The root certificate, for users to trust. */
  rootPem(): Promise<string>;
  issue(hostname: string): Promise<Obtained>;
}

interface Root {
  certificate: string;
  key_sealed: string;
}

interface OpenRoot {
  pem: string;
  /** Returns the certificate for a hostname, signed by this root. */
  sign(hostname: string, publicKey: CryptoKey): Promise<string>;
}

const dayMs = 24 * 3600_000;
const rootDays = 3652;
const leafDays = 90;
/** Certificates are valid from a little earlier, because visitors' clocks may be slow. */
const backdateMs = 3600_000;
const metaName = 'local_ca';
const sealContext = 'local ca key';
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const { subtle } = globalThis.crypto;

// Loaded on first use: it is a megabyte of code that most starts never need.
const loadX509 = () => import('@peculiar/x509');

export function createLocalCa(
  { db, seal, clock }: { db: Db; seal: Seal; clock: Clock },
  rules: OwnershipRules,
): LocalCa {
  let opened: Promise<OpenRoot> | null = null;
  const open = () => {
    opened ??= openRoot(db, seal, clock).catch((error) => {
      opened = null;
      throw error;
    });
    return opened;
  };
  const issue = async (hostname: string): Promise<Obtained> => {
    const { sign } = await open();
    const keys = await generateKeys();
    return { chainPem: await sign(hostname, keys.publicKey), keyPem: await toPem(keys.privateKey) };
  };
  return {
    name: 'local',
    rootPem: async () => (await open()).pem,
    issue,
    signs: (domain) => mayLocalCaSign(domain, rules),
    obtain: ({ domain }) => issue(domain.hostname),
    ariIdOf: async () => null,
    adviceOn: async () => ({ window: null, retryAfterMs: null }),
    close: async () => {},
  };
}

async function openRoot(db: Db, seal: Seal, clock: Clock): Promise<OpenRoot> {
  const x509 = await loadX509();
  const { certificate, key_sealed } = await findRoot(db, seal, clock);
  const root = new x509.X509Certificate(certificate);
  const der = x509.PemConverter.decodeFirst(seal.open(key_sealed, sealContext));
  const signingKey = await subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
  return {
    pem: certificate,
    async sign(hostname, publicKey) {
      const fromMs = wholeSeconds(clock.now() - backdateMs);
      const leaf = await x509.X509CertificateGenerator.create({
        serialNumber: newSerial(),
        issuer: root.subjectName,
        notBefore: new Date(fromMs),
        notAfter: new Date(fromMs + leafDays * dayMs),
        signingAlgorithm: algorithm,
        publicKey,
        signingKey,
        extensions: [
          new x509.BasicConstraintsExtension(false, undefined, true),
          new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
          new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
          // It must be critical because the subject is empty.
          new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: hostname }], true),
          await x509.AuthorityKeyIdentifierExtension.create(root.publicKey),
          await x509.SubjectKeyIdentifierExtension.create(publicKey),
        ],
      });
      return `${leaf.toString('pem')}\n`;
    },
  };
}

/** If several processes create a root at once, the first to write it wins. */
async function findRoot(db: Db, seal: Seal, clock: Clock): Promise<Root> {
  const read = () => db.selectFrom('meta').select('value').where('name', '=', metaName).executeTakeFirst();
  let row = await read();
  if (!row) {
    const value = JSON.stringify(await makeRoot(seal, clock));
    await db
      .insertInto('meta')
      .values({ name: metaName, value })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .execute();
    row = await read();
  }
  return JSON.parse(row!.value);
}

async function makeRoot(seal: Seal, clock: Clock): Promise<Root> {
  const x509 = await loadX509();
  const keys = await generateKeys();
  const fromMs = wholeSeconds(clock.now() - backdateMs);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    // The random part distinguishes installations, in case a browser trusts several.
    name: `CN=Sluice local CA ${randomBytes(3).toString('hex')}`,
    notBefore: new Date(fromMs),
    notAfter: new Date(fromMs + rootDays * dayMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key_sealed: seal.seal(await toPem(keys.privateKey), sealContext),
  };
}

const generateKeys = () => subtle.generateKey(algorithm, true, ['sign', 'verify']) as Promise<CryptoKeyPair>;

async function toPem(key: CryptoKey): Promise<string> {
  const base64 = Buffer.from(await subtle.exportKey('pkcs8', key)).toString('base64');
  return `-----BEGIN PRIVATE KEY-----\n${base64.match(/.{1,64}/g)!.join('\n')}\n-----END PRIVATE KEY-----\n`;
}

/** 16 random bytes, as a positive number. */
function newSerial(): string {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0]! & 0x3f) | 0x40;
  return bytes.toString('hex');
}

/** Times in certificates have no fractions of a second. */
const wholeSeconds = (ms: number) => Math.floor(ms / 1000) * 1000;

const maxHosts = 1000;

interface OwnHostParts {
  db: Db;
  clock: Clock;
  ca: LocalCa;
  routerDomain: string;
}

/**
 * Certificates for the environments' own addresses below the router's domain, which only the local CA can issue. They
 * are created on first use, kept in memory only, and replaced before they expire. null: the hostname is no such
 * address.
 */
export function ownHosts({ db, clock, ca, routerDomain }: OwnHostParts) {
  const issued = new LruCache<{ certificate: StoredCertificate; renewAt: number }>(maxHosts);
  const below = `.${routerDomain}`;
  return async (hostname: string): Promise<StoredCertificate | null> => {
    if (!hostname.endsWith(below)) return null;
    if (!(await isHostTaken(db, hostname.slice(0, -below.length)))) return null;
    const kept = issued.get(hostname);
    if (kept && clock.now() < kept.renewAt) return kept.certificate;
    const obtained = await ca.issue(hostname);
    const { serial, not_before, not_after } = readCertificate(obtained, hostname);
    const certificate = { id: `own ${serial}`, chainPem: obtained.chainPem, keyPem: obtained.keyPem };
    issued.set(hostname, { certificate, renewAt: renewAt(not_before, not_after) });
    return certificate;
  };
}
