// Environments answer below the router's own domain. Where the local CA signs, they have certificates too: made when they
// are first asked for, kept in memory only, and made again when they are old.
import type { SecureContext } from 'node:tls';
import type { Db } from '../../db/database.ts';
import { isHostTaken } from '../../environments/queries.ts';
import type { Clock } from '../../lib/clock.ts';
import { Recent } from '../../lib/recent.ts';
import type { LocalCa } from '../local-ca.ts';
import { readCertificate } from '../read-certificate.ts';
import { renewAt } from '../retry.ts';
import { secureContext } from './contexts.ts';

const maxHosts = 1000;

export interface OwnHostParts {
  db: Db;
  clock: Clock;
  ca: LocalCa;
  routerDomain: string;
}

/** The certificate of an environment's address; null: it is not one. */
export function ownHosts({ db, clock, ca, routerDomain }: OwnHostParts) {
  const made = new Recent<{ context: SecureContext; renewAt: number }>(maxHosts);
  const below = `.${routerDomain}`;
  return async (hostname: string): Promise<SecureContext | null> => {
    if (!hostname.endsWith(below)) return null;
    if (!(await isHostTaken(db, hostname.slice(0, -below.length)))) return null;
    const kept = made.get(hostname);
    if (kept && clock.now() < kept.renewAt) return kept.context;
    const obtained = await ca.issue(hostname);
    const { not_before, not_after } = readCertificate(obtained, hostname);
    const context = secureContext(obtained);
    made.set(hostname, { context, renewAt: renewAt(not_before, not_after) });
    return context;
  };
}
