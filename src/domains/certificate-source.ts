// What routers present, from the database: certificates, and responses to http-01 challenges. The process that carries
// out an order writes the responses; any router serves them.
import type { Db } from '../db/database.ts';
import { prepared } from '../db/prepared.ts';
import type { Seal } from '../lib/seal.ts';
import type { CertificateSource, StoredCertificate } from '../traffic/data-plane.ts';
import { keyContext } from './certificate.ts';

const selectCurrent = prepared((db) => db.selectFrom('domain').select('certificate_id').where('hostname', '=', ''));
const selectCertificate = prepared((db) =>
  db.selectFrom('certificate').select(['chain_pem', 'key_sealed']).where('id', '=', ''),
);

interface SourceParts {
  db: Db;
  seal: Seal;
  /** For names that are not domains, such as the addresses of environments. */
  otherwise(hostname: string): Promise<StoredCertificate | null>;
}

export function databaseCertificates({ db, seal, otherwise }: SourceParts): CertificateSource {
  const find = async (hostname: string, known: string | null): Promise<StoredCertificate | 'current' | null> => {
    const [domain] = await selectCurrent(db, hostname);
    const other = domain ? null : await otherwise(hostname);
    const id = domain ? domain.certificate_id : (other?.id ?? null);
    if (id === null) return null;
    if (id === known) return 'current';
    if (other) return other;
    const [row] = await selectCertificate(db, id);
    return row ? { id, chainPem: row.chain_pem, keyPem: seal.open(row.key_sealed, keyContext(id)) } : null;
  };
  return { find, answerChallenge: (hostname, token) => findAnswer(db, hostname, token) };
}

/** Removes leftovers of domains that were deleted during an order. */
const keptForMs = 7 * 24 * 3600_000;

interface Challenge {
  token: string;
  hostname: string;
  keyAuthorization: string;
}

export async function insertChallenge(db: Db, challenge: Challenge, nowMs: number): Promise<void> {
  const row = {
    token: challenge.token,
    hostname: challenge.hostname,
    key_authorization: challenge.keyAuthorization,
    created_at: nowMs,
  };
  await db
    .insertInto('acme_challenge')
    .values(row)
    .onConflict((conflict) => conflict.column('token').doUpdateSet(row))
    .execute();
}

export async function deleteChallenges(db: Db, hostname: string, nowMs: number): Promise<void> {
  await db
    .deleteFrom('acme_challenge')
    .where((e) => e.or([e('hostname', '=', hostname), e('created_at', '<', nowMs - keptForMs)]))
    .execute();
}

const selectChallenge = prepared((db) =>
  db.selectFrom('acme_challenge').select('key_authorization').where('token', '=', '').where('hostname', '=', ''),
);

const tokenForm = /^[A-Za-z0-9_-]{1,200}$/;

async function findAnswer(db: Db, hostname: string, token: string): Promise<string | null> {
  if (!tokenForm.test(token)) return null;
  const [row] = await selectChallenge(db, token, hostname);
  return row?.key_authorization ?? null;
}
