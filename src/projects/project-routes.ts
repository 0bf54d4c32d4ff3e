import type { Project } from '../contract/projects.ts';
import * as contract from '../contract/projects.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { type Answer, type ServedRoute, serve } from '../http/api/served-route.ts';
import type { Clock } from '../lib/clock.ts';
import {
  listProjects,
  listShownEnvironments,
  listShownEnvironmentsOf,
  type ProjectRow,
  presentProject,
  requireProject,
  updateProject,
} from './project-queries.ts';
import { slugTaken } from './project-slugs.ts';

type ShownEnvironments = Awaited<ReturnType<typeof listShownEnvironments>>;

/** SQLite gives the same rows again until something changes, and so does this with what is shown of them. */
const lastAnswers = new WeakMap<ProjectRow, { environments: ShownEnvironments; answer: Answer<Project> }>();

function answerOf(row: ProjectRow, environments: ShownEnvironments): Answer<Project> {
  const last = lastAnswers.get(row);
  if (last?.environments === environments) return last.answer;
  const answer = { body: presentProject(row, environments), version: row.version, isRepeated: true };
  lastAnswers.set(row, { environments, answer });
  return answer;
}

export function projectRoutes({ clock }: { clock: Clock }): ServedRoute[] {
  return [
    serve(contract.listProjects, async (call, db) => {
      const { rows, searchedTo } = await listProjects(db, call.caller, call.query.search, call.page);
      const shown = rows.slice(0, call.page.limit).map((row) => row.id);
      const shownIn = await listShownEnvironmentsOf(db, shown);
      const present = (row: ProjectRow) => presentProject(row, shownIn.get(row.id)!);
      return { body: call.paginate(rows, (row) => row.id, present, searchedTo) };
    }),

    serve(contract.getProject, async (call, db) => {
      const row = await requireProject(db, call.caller, call.params.id);
      return answerOf(row, await listShownEnvironments(db, row.id));
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
      const environments = await listShownEnvironments(tx, row.id);
      return {
        body: presentProject(changed, environments),
        before: presentProject(row, environments),
        version: row.version + 1,
      };
    }),
  ];
}
