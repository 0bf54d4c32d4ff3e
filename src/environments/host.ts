import type { Db } from '../db/database.ts';
import type { IdSource } from '../lib/ids.ts';
import { isHostTaken } from './queries.ts';

/**
 * The first label of an environment's address. It gets a random suffix if it is taken: two accounts may have a project
 * with the same slug, and `a-b` + `c` gives the same label as `a` + `b-c`.
 */
export async function freeHost(db: Db, ids: IdSource, slug: string, name: string): Promise<string> {
  const plain = `${slug}-${name}`;
  if (!(await isHostTaken(db, plain))) return plain;
  return `${plain.slice(0, 63 - 9)}-${ids('env').slice(-8)}`;
}
