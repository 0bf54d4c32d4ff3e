// The certificates that routers show, from the database.
import type { Db } from '../../db/database.ts';
import { prepared } from '../../db/prepared.ts';
import type { Seal } from '../../lib/seal.ts';
import type { CertificateSource, StoredCertificate } from '../../traffic/certificates.ts';
import { findAnswer } from '../challenges.ts';
import { keyContext } from '../key-context.ts';

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
