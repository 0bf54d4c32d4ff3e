import type { Db } from '../db/database.ts';
import type { IdSource } from '../lib/ids.ts';
import { isHostTaken } from './queries.ts';

/**
 * The first label of an environment's address. Two accounts may have a project of the same slug, and `a-b` + `c` reads
 * like `a` + `b-c`: whoever comes second gets a few characters more.
 */
export async function freeHost(db: Db, ids: IdSource, slug: string, name: string): Promise<string> {
  const plain = `${slug}-${name}`;
  if (!(await isHostTaken(db, plain))) return plain;
  return `${plain.slice(0, 63 - 9)}-${ids('env').slice(-8)}`;
}
