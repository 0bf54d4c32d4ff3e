import { insertDefaultRules } from '../alerts/defaults.ts';
import { endAlertsOf } from '../alerts/incidents.ts';
import type { Caller } from '../contract/caller.ts';
import { ApiError } from '../contract/errors.ts';
import * as contract from '../contract/projects.ts';
import type { Db } from '../db/database.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { ChangedMeanwhile } from '../db/guarded.ts';
import { deploymentInProgress, findInProgressOf } from '../deployments/in-progress.ts';
import { newEnvironment } from '../environments/change.ts';
import { freeHost } from '../environments/host.ts';
import { insertEnvironment } from '../environments/queries.ts';
import { type ServedRoute, serve } from '../http/api/route.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Regions } from '../regions/regions.ts';
import { touchRouting } from '../traffic/queries.ts';
import {
  deleteProject,
  insertProject,
  isSlugTaken,
  listEnvironmentNames,
  listEnvironmentNamesOf,
  listProjects,
  listTakenSlugs,
  type ProjectRow,
  presentProject,
  requireProject,
  updateProject,
} from './queries.ts';
import { slugOf, suffixed } from './slug.ts';

const firstEnvironment = 'production';

export interface ProjectParts {
  ids: IdSource;
  clock: Clock;
  regions: Regions;
  /** What runs or is routed may have to change. */
  changed(): void;
}

export function projectRoutes({ ids, clock, regions, changed }: ProjectParts): ServedRoute[] {
  return [
    serve(contract.listProjects, async (call, db) => {
      const rows = await listProjects(db, call.caller, call.page);
      const shown = rows.slice(0, call.page.limit).map((row) => row.id);
      const names = await listEnvironmentNamesOf(db, shown);
      const present = (row: ProjectRow) => presentProject(row, names.get(row.id)!);
      return { body: call.paginate(rows, (row) => row.id, present) };
    }),

    serve(contract.createProject, async (call, tx) => {
      refuseBoundToken(call.caller);
      const { body, caller } = call;
      const region = regions.choose(body.region);
      const slug = body.slug ?? (await freeSlug(tx, ids, caller.accountId, slugOf(body.name)));
      const row: ProjectRow = {
        id: ids('prj'),
        account_id: caller.accountId,
        name: body.name,
        slug,
        description: body.description ?? null,
        labels: JSON.stringify(body.labels ?? []),
        next_sequence: 1,
        created_at: clock.now(),
        updated_at: clock.now(),
        version: 1,
      };
      try {
        await insertProject(tx, row);
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        // Nobody asked for this slug by name: another request took it in between, so look for the next one.
        throw body.slug === undefined ? new ChangedMeanwhile() : slugTaken(slug);
      }
      const host = await freeHost(tx, ids, slug, firstEnvironment);
      const named = { projectId: row.id, name: firstEnvironment, region, host };
      await insertEnvironment(tx, newEnvironment(named, clock.now()));
      await insertDefaultRules(tx, { ids, clock }, { projectId: row.id, environment: firstEnvironment });
      return {
        body: presentProject(row, [firstEnvironment]),
        version: row.version,
        location: `/projects/${row.id}`,
        projectId: row.id,
      };
    }),

    serve(contract.getProject, async (call, db) => {
      const row = await requireProject(db, call.caller, call.params.id);
      return { body: presentProject(row, await listEnvironmentNames(db, row.id)), version: row.version };
    }),

    serve(contract.updateProject, async (call, tx) => {
      const row = await requireProject(tx, call.caller, call.params.id);
      call.expectVersion(row.version);
      const { body } = call;
      const changed: ProjectRow = {
        ...row,
        name: body.name ?? row.name,
        slug: body.slug ?? row.slug,
        description: body.description === undefined ? row.description : body.description,
        labels: body.labels === undefined ? row.labels : JSON.stringify(body.labels),
        updated_at: clock.now(),
      };
      try {
        await updateProject(tx, changed);
      } catch (error) {
        throw isUniqueViolation(error) ? slugTaken(changed.slug) : error;
      }
      return {
        body: presentProject(changed, await listEnvironmentNames(tx, row.id)),
        version: row.version + 1,
      };
    }),

    serve(contract.deleteProject, async (call, tx) => {
      const row = await requireProject(tx, call.caller, call.params.id);
      call.expectVersion(row.version);
      const busy = await findInProgressOf(tx, row.id);
      if (busy) throw deploymentInProgress(busy);
      await endAlertsOf(tx, { ids, clock }, { projectId: row.id });
      await deleteProject(tx, row);
      await touchRouting(tx);
      call.afterCommit(changed);
      return { body: undefined };
    }),
  ];
}

/** The slug itself, or with a small number, or, where people have many of one name, with something random. */
async function freeSlug(db: Db, ids: IdSource, accountId: string, slug: string): Promise<string> {
  if (!(await isSlugTaken(db, accountId, slug))) return slug;
  const candidates = Array.from({ length: 8 }, (_, index) => suffixed(slug, `-${index + 2}`));
  const taken = await listTakenSlugs(db, accountId, candidates);
  return candidates.find((candidate) => !taken.has(candidate)) ?? suffixed(slug, `-${ids('prj').slice(-8)}`);
}

function refuseBoundToken(caller: Caller): void {
  if (caller.projectIds === null) return;
  throw new ApiError('insufficient_scope', 'A token bound to projects cannot create another one.', {
    details: [{ path: 'token.project_ids', message: 'must be null' }],
  });
}

const slugTaken = (slug: string) =>
  new ApiError('slug_taken', `Another project of this account has the slug ${slug}.`, {
    details: [{ path: 'body.slug', message: slug }],
  });
