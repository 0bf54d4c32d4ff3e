// Certificates for the environments' own addresses below the router's domain, which only the local CA can issue. They are
// created on first use, kept in memory only, and replaced before they expire.
import type { Db } from '../../db/database.ts';
import { isHostTaken } from '../../environments/queries.ts';
import { LruCache } from '../../lib/bounded-cache.ts';
import type { Clock } from '../../lib/clock.ts';
import type { StoredCertificate } from '../../traffic/certificates.ts';
import type { LocalCa } from '../local-ca.ts';
import { readCertificate } from '../read-certificate.ts';
import { renewAt } from '../retry.ts';

const maxHosts = 1000;

interface OwnHostParts {
  db: Db;
  clock: Clock;
  ca: LocalCa;
  routerDomain: string;
}

/** Finds the certificate of an environment's address; null: the hostname is not one. */
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
