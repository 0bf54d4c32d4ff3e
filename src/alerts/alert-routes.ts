import * as contract from '../contract/alerts.ts';
import { getMetrics } from '../contract/metrics.ts';
import { revisionNumber } from '../contract/references.ts';
import { isUniqueViolation } from '../db/database-errors.ts';
import { ChangedMeanwhile } from '../db/guarded.ts';
import { environmentUnknown, findEnvironment } from '../environments/environment-queries.ts';
import { type ServedRoute, serve, serveInParts } from '../http/api/served-route.ts';
import { requireProject } from '../projects/project-queries.ts';
import { listAlerts, presentAlert, requireAlert } from './alert-queries.ts';
import { alertRuleRoutes } from './alert-rule-routes.ts';
import { receiveMessage, refuseTooManyRules, splitMessage } from './alertmanager.ts';
import { type IncidentParts, insertAlertEvents } from './incidents.ts';
import { readSeries, spanOf } from './traffic-series.ts';

export function alertRoutes(parts: IncidentParts): ServedRoute[] {
  return [
    ...alertRuleRoutes(parts),

    serve(contract.listAlerts, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const rows = await listAlerts(db, project.id, call.query, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentAlert) };
    }),

    serve(contract.getAlert, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      return { body: presentAlert(await requireAlert(db, project.id, call.params.alr)) };
    }),

    serveInParts(
      contract.receiveAlertmanager,
      async (call, tx) => {
        const project = await requireProject(tx, call.caller, call.params.id);
        const received = await receiveMessage(tx, parts, project, call.body, call.query.environment).catch((error) => {
          // Another message has created the rule in the meantime.
          throw isUniqueViolation(error) ? new ChangedMeanwhile() : error;
        });
        const { fired, resolved } = received;
        await insertAlertEvents(tx, parts, [...fired, ...resolved]);
        return { body: { fired: fired.length, resolved: resolved.length } };
      },
      {
        async partsOf(call, db) {
          const bodies = splitMessage(call.body);
          if (bodies.length > 1) {
            const project = await requireProject(db, call.caller, call.params.id);
            await refuseTooManyRules(db, project, call.body, call.query.environment);
          }
          return bodies.map((body) => ({ ...call, body }));
        },
        merge: (answers) => ({
          body: {
            fired: answers.reduce((sum, { body }) => sum + body.fired, 0),
            resolved: answers.reduce((sum, { body }) => sum + body.resolved, 0),
          },
        }),
      },
    ),

    serve(getMetrics, async (call, db) => {
      const project = await requireProject(db, call.caller, call.params.id);
      const { environment = 'production', revision } = call.query;
      const span = spanOf(call.query, parts.clock.now());
      if (!(await findEnvironment(db, project.id, environment))) {
        throw environmentUnknown(environment, 'query.environment');
      }
      const number = revision === undefined ? null : revisionNumber(revision);
      return {
        body: await readSeries(db, { projectId: project.id, environment, revision: number }, span, parts.clock),
      };
    }),
  ];
}
