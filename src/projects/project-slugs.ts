// Slugs of projects: derived from a name, and made unique in the account.
import { ApiError } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { prepared } from '../db/prepared.ts';
import type { IdSource } from '../lib/ids.ts';

/** Derives a slug from a name: ASCII letters and digits, everything else becomes a dash. */
export function slugOf(name: string): string {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^[-0-9]+|-+$/g, '')
    .slice(0, 39)
    .replace(/-+$/, '');
  return plain === '' ? 'project' : plain;
}

/** The slug with a suffix, cut to the length that a slug may have. */
export function suffixed(slug: string, suffix: string): string {
  return slug.slice(0, 39 - suffix.length).replace(/-+$/, '') + suffix;
}

/** The slug itself, else with a number from 2 to 9, else with a random suffix. */
export async function freeSlug(db: Db, ids: IdSource, accountId: string, slug: string): Promise<string> {
  if (!(await isSlugTaken(db, accountId, slug))) return slug;
  const candidates = Array.from({ length: 8 }, (_, index) => suffixed(slug, `-${index + 2}`));
  const taken = await listTakenSlugs(db, accountId, candidates);
  return candidates.find((candidate) => !taken.has(candidate)) ?? suffixed(slug, `-${ids('prj').slice(-8)}`);
}

export const slugTaken = (slug: string) =>
  new ApiError('slug_taken', `Another project in this account already has the slug ${slug}.`, {
    details: [{ path: 'body.slug', message: slug }],
  });

async function listTakenSlugs(db: Db, accountId: string, slugs: string[]): Promise<Set<string>> {
  const rows = await db
    .selectFrom('project')
    .select('slug')
    .where('account_id', '=', accountId)
    .where('slug', 'in', slugs)
    .execute();
  return new Set(rows.map((row) => row.slug));
}

const selectSlug = prepared((db) =>
  db.selectFrom('project').select('id').where('account_id', '=', '').where('slug', '=', ''),
);

async function isSlugTaken(db: Db, accountId: string, slug: string): Promise<boolean> {
  return (await selectSlug(db, accountId, slug)).length > 0;
}
