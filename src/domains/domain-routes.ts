import type { Quotas } from '../accounts/quotas.ts';
import { deleteDomainRules, insertDomainRule } from '../alerts/default-rules.ts';
import * as contract from '../contract/domains.ts';
import { ApiError, quotaExceeded } from '../contract/errors.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { lockRow } from '../db/guarded.ts';
import { keyOf } from '../environments/environment-key.ts';
import { environmentUnknown, findEnvironment } from '../environments/environment-queries.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import { requireProject } from '../projects/project-queries.ts';
import { publish } from '../signals/signals.ts';
import { markRoutingChanged } from '../traffic/traffic-queries.ts';
import {
  lookUpRecord,
  notPointed,
  type RecordLookup,
  type Resolve,
  type ResolveTxt,
  requireAddress,
} from './dns-checks.ts';
import {
  countDomains,
  type DomainRow,
  deleteDomain,
  findCertificate,
  findCertificates,
  findDomainOf,
  insertDomain,
  listDomains,
  presentDomain,
  requireDomain,
  updateDomain,
} from './domain-queries.ts';
import { checkHostname, needsNoProof, type OwnershipRules, type ReservedNames, recordToAdd } from './hostname.ts';

const maxDomains = 1000;

interface DomainParts {
  db: Db;
  ids: IdSource;
  clock: Clock;
  quotas: Quotas;
  reserved: ReservedNames;
  rules: OwnershipRules;
  /** For the DNS check; null: the local CA issues certificates, which needs no DNS. */
  resolve: Resolve | null;
  resolveTxt: ResolveTxt;
  urlOf(hostname: string): string;
}

export function domainRoutes(parts: DomainParts): ServedRoute[] {
  return [...readingRoutes(parts), ...changingRoutes(parts), ...issuingRoutes(parts)];
}

function readingRoutes({ urlOf }: DomainParts): ServedRoute[] {
  return [
    serve(contract.listDomains, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const { rows, searchedTo } = await listDomains(db, project.id, call.query, call.page);
      const certificates = await findCertificates(db, rows);
      const present = (row: DomainRow) => presentDomain(row, certificates.get(row.certificate_id ?? '') ?? null, urlOf);
      return { body: call.paginate(rows, (row) => row.id, present, searchedTo) };
    }),

    serve(contract.getDomain, async (call, db) => {
      const row = await requireDomain(db, call.caller, call.params);
      return { body: presentDomain(row, await findCertificate(db, row), urlOf), version: row.version };
    }),
  ];
}

function changingRoutes(parts: DomainParts): ServedRoute[] {
  const { db: root, ids, clock, quotas, reserved, rules, urlOf } = parts;
  const proved = proofByRecord(parts);
  return [
    serve(
      contract.createDomain,
      async (call, tx) => {
        const project = await requireProject(tx, call.caller, call.params.id);
        const { environment } = call.body;
        const { hostname, mistake } = checkHostname(call.body.hostname, reserved);
        if (mistake !== null) throw invalidHostname(mistake);
        if (!(await findEnvironment(tx, project.id, environment))) throw environmentUnknown(environment);
        await lockRow(tx, 'project', project.id);
        if ((await countDomains(tx, project.id)) >= maxDomains) throw tooMany();
        const row = newDomain({ id: ids('dom'), accountId: call.caller.accountId, nowMs: clock.now() }, project.id, {
          hostname,
          environment,
          proof: needsNoProof(hostname, rules) ? 'not_needed' : proved.has(call) ? 'txt_record' : null,
        });
        await quotas.within(tx, row.account_id, ['domains'], () => takeHostname(tx, row));
        await insertDomainRule(tx, { ids, clock }, { projectId: project.id, environment, hostname });
        await markRoutingChanged(tx, { projectId: project.id, environment });
        publish(tx, 'domains', { hostname });
        return {
          body: presentDomain(row, null, urlOf),
          version: row.version,
          location: `/projects/${project.id}/domains/${row.id}`,
        };
      },
      async (call) => {
        const { hostname } = checkHostname(call.body.hostname, reserved);
        const holder = hostname === null ? undefined : await findDomainOf(root, hostname);
        const { accountId } = call.caller;
        if (holder?.proof !== null || holder.account_id === accountId) return;
        await proved.lookUp(call, { hostname: holder.hostname, account_id: accountId });
      },
    ),

    serve(contract.deleteDomain, async (call, tx) => {
      const row = await requireDomain(tx, call.caller, call.params);
      call.expectVersion(row.version);
      const { project_id: projectId, environment, hostname } = row;
      const before = presentDomain(row, await findCertificate(tx, row), urlOf);
      await deleteDomain(tx, row);
      await deleteDomainRules(tx, { projectId, environment, hostname });
      await markRoutingChanged(tx, { projectId, environment });
      publish(tx, 'domains', { hostname });
      return { body: undefined, before };
    }),
  ];
}

/** Both make the domain due now, but not before the time until which the authority asked us to wait. */
function issuingRoutes(parts: DomainParts): ServedRoute[] {
  const { db: root, clock, rules, resolve, urlOf } = parts;
  const proved = proofByRecord(parts);
  const retryNow = async (
    tx: Db,
    row: DomainRow,
    changed: Partial<Pick<DomainRow, 'proof' | 'failures' | 'renew_asked'>>,
  ) => {
    const nowMs = clock.now();
    const due = { ...changed, next_attempt_at: Math.max(nowMs, row.wait_until ?? 0), updated_at: nowMs };
    await updateDomain(tx, row, due);
    publish(tx, 'domains', { hostname: row.hostname });
    return presentDomain({ ...row, ...due }, await findCertificate(tx, row), urlOf);
  };
  return [
    serve(
      contract.verifyDomain,
      async (call, tx) => {
        const row = await requireDomain(tx, call.caller, call.params);
        const isNew = row.proof === null && proved.has(call);
        const body = await retryNow(tx, row, { failures: 0, ...(isNew && { proof: 'txt_record' }) });
        if (isNew) await markRoutingChanged(tx, keyOf(row));
        return { body, version: row.version + 1 };
      },
      async (call) => {
        const row = await requireDomain(root, call.caller, call.params);
        const record = row.proof === null ? await proved.lookUp(call, row) : null;
        if (record?.isProved) return;
        if (resolve) return requireAddress(row.hostname, resolve);
        if (record && !needsNoProof(row.hostname, rules)) throw notProved(row, record);
      },
    ),

    serve(contract.renewDomain, async (call, tx) => {
      const row = await requireDomain(tx, call.caller, call.params);
      const body = await retryNow(tx, row, { renew_asked: 1 });
      return { body, version: row.version + 1 };
    }),
  ];
}

function newDomain(
  { id, accountId, nowMs }: { id: string; accountId: string; nowMs: number },
  projectId: string,
  { hostname, environment, proof }: Pick<DomainRow, 'hostname' | 'environment' | 'proof'>,
): DomainRow {
  return {
    id,
    account_id: accountId,
    project_id: projectId,
    environment,
    hostname,
    state: 'pending',
    proof,
    txt_found: null,
    certificate_id: null,
    last_error: null,
    failures: 0,
    next_attempt_at: nowMs,
    wait_until: null,
    renew_asked: 0,
    lease_owner: null,
    lease_until: 0,
    order_directory: null,
    order_url: null,
    order_key_sealed: null,
    created_at: nowMs,
    updated_at: nowMs,
    version: 1,
  };
}

const invalidHostname = (mistake: string) =>
  new ApiError('invalid_request', 'The hostname is not allowed.', {
    details: [{ path: 'body.hostname', message: mistake }],
  });

const notProved = (row: DomainRow, { found }: RecordLookup) =>
  notPointed(
    `${row.hostname} is not proved to be yours yet.`,
    found === null
      ? `DNS did not answer when it was asked for ${recordToAdd(row)}`
      : `there is no ${recordToAdd(row).slice('the '.length)}${found.length > 0 ? `, but ${found.join(', ')}` : ''}`,
  );

const tooMany = () => quotaExceeded(`A project has at most ${maxDomains} domains.`, 'domains', maxDomains);

/** Looks up TXT records before the transaction of a request, which must not wait for DNS, and remembers those found. */
function proofByRecord({ resolveTxt }: { resolveTxt: ResolveTxt }) {
  const found = new WeakSet<object>();
  return {
    async lookUp(call: object, domain: Pick<DomainRow, 'hostname' | 'account_id'>): Promise<RecordLookup> {
      const record = await lookUpRecord(domain, resolveTxt);
      if (record.isProved) found.add(call);
      return record;
    },
    has: (call: object): boolean => found.has(call),
  };
}

/**
 * An account that has only claimed the name gives way to one that proves to own it: it cannot be kept from its owner.
 */
async function takeHostname(tx: Db, row: DomainRow): Promise<void> {
  const holder = await findDomainOf(tx, row.hostname);
  if (holder) {
    if (holder.proof !== null || row.proof === null || holder.account_id === row.account_id)
      throw hostnameTaken(row, holder);
    await deleteDomain(tx, holder);
    const { project_id: projectId, environment, hostname, account_id: accountId } = holder;
    await deleteDomainRules(tx, { projectId, environment, hostname });
    publish(tx, 'changes', { accountId, projectId, environment });
  }
  try {
    await insertDomain(tx, row);
  } catch (error) {
    throw isUniqueViolation(error) ? hostnameTaken(row, null) : error;
  }
}

/**
 * Does not say by whom it is taken. The owner of a name that another account has only claimed is told how to get it.
 */
function hostnameTaken(row: DomainRow, holder: DomainRow | null): ApiError {
  const isOnlyClaimed = holder?.proof === null && holder.account_id !== row.account_id;
  const details = [{ path: 'body.hostname', message: row.hostname }];
  if (isOnlyClaimed) details.push({ path: 'body.hostname', message: `if it is yours, add ${recordToAdd(row)}` });
  return new ApiError('domain_taken', 'This hostname is already in use.', { details });
}
