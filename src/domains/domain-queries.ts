// Domains and their certificates in the database, and as the API shows them.
import { type Selectable, sql } from 'kysely';
import type { Certificate, Domain } from '../contract/domains.ts';
import { notFound } from '../contract/errors.ts';
import type { Caller } from '../contract/scopes.ts';
import type { Db } from '../db/database.ts';
import { changeOne } from '../db/guarded.ts';
import type { Page } from '../db/keyset-page.ts';
import { type Found, searchNewestFirst } from '../db/search.ts';
import type { Tables } from '../db/tables.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import { requireProject } from '../projects/project-queries.ts';
import { txtRecordOf } from './hostname.ts';

export type DomainRow = Selectable<Tables['domain']>;
export type CertificateRow = Selectable<Tables['certificate']>;

/** The columns that the API shows, which leave out the key. */
const shown = ['id', 'issuer', 'serial', 'not_before', 'not_after', 'renew_at', 'fingerprint_sha256'] as const;
type ShownCertificate = Pick<CertificateRow, (typeof shown)[number]>;

export async function listDomains(
  db: Db,
  projectId: string,
  { environment, search }: { environment?: string | undefined; search?: string | undefined },
  page: Page,
): Promise<Found<DomainRow>> {
  let query = db.selectFrom('domain').selectAll().where('project_id', '=', projectId);
  if (environment !== undefined) query = query.where('environment', '=', environment);
  return searchNewestFirst(query, search, [sql`domain.hostname`, sql`domain.environment`, sql`domain.state`], page);
}

export async function requireDomain(db: Db, caller: Caller, params: { id: string; dom: string }): Promise<DomainRow> {
  const project = await requireProject(db, caller, params.id);
  const row = await db
    .selectFrom('domain')
    .selectAll()
    .where('project_id', '=', project.id)
    .where('id', '=', params.dom)
    .executeTakeFirst();
  if (!row) throw notFound('dom', params.dom);
  return row;
}

export async function countDomains(db: Db, projectId: string): Promise<number> {
  const row = await db
    .selectFrom('domain')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('project_id', '=', projectId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

export async function findDomainOf(db: Db, hostname: string): Promise<DomainRow | undefined> {
  return db.selectFrom('domain').selectAll().where('hostname', '=', hostname).executeTakeFirst();
}

export async function insertDomain(tx: Db, row: DomainRow): Promise<void> {
  await tx.insertInto('domain').values(row).execute();
}

/** For changes that users ask for. The issuer writes the state of the certificate in certificate-leases.ts. */
export async function updateDomain(
  tx: Db,
  { id, version }: DomainRow,
  changed: Partial<Pick<DomainRow, 'proof' | 'failures' | 'next_attempt_at' | 'renew_asked' | 'updated_at'>>,
): Promise<void> {
  await changeOne(
    tx
      .updateTable('domain')
      .set({ ...changed, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version),
  );
}

export async function deleteDomain(tx: Db, { id, version }: DomainRow): Promise<void> {
  await changeOne(tx.deleteFrom('domain').where('id', '=', id).where('version', '=', version));
}

export async function findCertificates(db: Db, rows: DomainRow[]): Promise<Map<string, ShownCertificate>> {
  const ids = rows.flatMap((row) => row.certificate_id ?? []);
  if (ids.length === 0) return new Map();
  const found = await db.selectFrom('certificate').select(shown).where('id', 'in', ids).execute();
  return new Map(found.map((row) => [row.id, row]));
}

export async function findCertificate(db: Db, row: DomainRow): Promise<ShownCertificate | null> {
  return (await findCertificates(db, [row])).get(row.certificate_id ?? '') ?? null;
}

const presentCertificate = (row: ShownCertificate): Certificate => ({
  issuer: row.issuer,
  serial: row.serial,
  not_before: isoTime(row.not_before),
  not_after: isoTime(row.not_after),
  renew_at: isoTime(row.renew_at),
  fingerprint_sha256: row.fingerprint_sha256,
});

/** Once the hostname is proved, its record no longer matters. */
const txtFound = ({ proof, txt_found }: DomainRow): string[] | null =>
  proof === null && txt_found !== null ? JSON.parse(txt_found) : null;

export function presentDomain(
  row: DomainRow,
  certificate: ShownCertificate | null,
  urlOf: (hostname: string) => string,
): Domain {
  return {
    id: row.id,
    hostname: row.hostname,
    environment: row.environment,
    url: urlOf(row.hostname),
    state: row.state,
    proof: row.proof,
    txt_record: { ...txtRecordOf(row), found: txtFound(row) },
    certificate: certificate && presentCertificate(certificate),
    last_error: row.last_error,
    next_attempt_at: isoTimeOrNull(row.failures > 0 ? row.next_attempt_at : null),
    created_at: isoTime(row.created_at),
  };
}
