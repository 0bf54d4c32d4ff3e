import * as contract from '../contract/alerts.ts';
import { getMetrics } from '../contract/metrics.ts';
import { isUniqueViolation } from '../db/errors.ts';
import { findEnvironment } from '../environments/queries.ts';
import { ChangedMeanwhile, type ServedRoute, serve } from '../http/api/route.ts';
import { requireProject } from '../projects/queries.ts';
import { takeMessage } from './alertmanager.ts';
import { type IncidentParts, tellOfAlerts } from './incidents.ts';
import { listAlerts, presentAlert, requireAlert } from './queries.ts';
import { alertRuleRoutes, environmentUnknown } from './rule-routes.ts';
import { readSeries, spanOf } from './series.ts';

export interface AlertParts extends IncidentParts {
  /** Something about this environment may have to be done. */
  kick(key: { projectId: string; environment: string }): void;
}

export function alertRoutes(parts: AlertParts): ServedRoute[] {
  return [
    ...alertRuleRoutes(parts),

    serve(contract.listAlerts, async (ask, db) => {
      const project = await requireProject(db, ask.caller, ask.params.id);
      const rows = await listAlerts(db, project.id, ask.query, ask.page);
      return { body: ask.paginate(rows, (row) => row.id, presentAlert) };
    }),

    serve(contract.getAlert, async (ask, db) => {
      const project = await requireProject(db, ask.caller, ask.params.id);
      return { body: presentAlert(await requireAlert(db, project.id, ask.params.alr)) };
    }),

    serve(contract.receiveAlertmanager, async (ask, tx) => {
      const project = await requireProject(tx, ask.caller, ask.params.id);
      const taken = await takeMessage(tx, parts, project, ask.body, ask.query.environment).catch((error) => {
        // Another message has made the rule in between.
        throw isUniqueViolation(error) ? new ChangedMeanwhile() : error;
      });
      const { fired, resolved } = taken;
      await tellOfAlerts(tx, parts, [...fired, ...resolved]);
      for (const environment of new Set(fired.map((row) => row.environment))) {
        ask.afterCommit(() => parts.kick({ projectId: project.id, environment }));
      }
      return { body: { fired: fired.length, resolved: resolved.length } };
    }),

    serve(getMetrics, async (ask, db) => {
      const project = await requireProject(db, ask.caller, ask.params.id);
      const { environment = 'production', revision } = ask.query;
      const span = spanOf(ask.query, parts.clock.now());
      if (!(await findEnvironment(db, project.id, environment))) {
        throw environmentUnknown(environment, 'query.environment');
      }
      const number = revision === undefined ? null : Number(revision.slice(1));
      return {
        body: await readSeries(db, { projectId: project.id, environment, revision: number }, span, parts.clock),
      };
    }),
  ];
}
