// Deployments and revisions as the API and the events show them. No I/O.
import type { Deployment } from '../contract/deployments.ts';
import { imageIdOf, revisionId } from '../contract/references.ts';
import type { Revision } from '../contract/revisions.ts';
import { healthCheckOf, resourcesOf } from '../environments/revision-settings.ts';
import { isoTime, isoTimeOrNull } from '../lib/iso-time.ts';
import { quantileMs } from '../traffic/latency.ts';
import type { Answered } from '../traffic/request-detail.ts';
import type { DeploymentRow, RevisionRow, TimelineRow } from './deployment-queries.ts';
import type { Analysis, Measured } from './rules/analysis.ts';

const revisionIdOrNull = (number: number | null): string | null => (number === null ? null : revisionId(number));

const share = (count: number, requests: number): number | null =>
  requests === 0 ? null : Math.round((count / requests) * 1e6) / 1e6;

const presentSide = ({ requests, errors, clientErrors, latency }: Answered) => ({
  requests,
  error_rate: share(errors, requests),
  client_error_rate: share(clientErrors, requests),
  p95_ms: quantileMs(latency, 0.95),
});

const presentAnalysis = ({ verdict, reason, evidence }: Analysis) => ({ verdict, reason, evidence });

export interface CanaryState {
  traffic: Measured;
  analysis: Analysis;
}

export function presentDeployment(
  row: DeploymentRow,
  timeline: TimelineRow[],
  canary: CanaryState | null = null,
): Deployment {
  return {
    id: row.id,
    project_id: row.project_id,
    environment: row.environment,
    kind: row.kind,
    revision: revisionId(row.revision),
    previous_revision: revisionIdOrNull(row.previous_revision),
    image: row.image,
    ...presentDigest(row.digest),
    pull: row.pull,
    strategy: row.strategy,
    canary_percent: row.canary_percent,
    state: row.state,
    canary:
      row.canary_phase === null || canary === null
        ? null
        : {
            phase: row.canary_phase,
            step: row.canary_step,
            percent: row.canary_percent_now,
            until: isoTimeOrNull(row.step_until),
            stable: presentSide(canary.traffic.stable),
            canary: presentSide(canary.traffic.canary),
            analysis: presentAnalysis(canary.analysis),
          },
    failure:
      row.failure_code === null
        ? null
        : { code: row.failure_code, message: row.failure_message ?? '', log_tail: JSON.parse(row.failure_log ?? '[]') },
    note: row.note,
    created_by: row.created_by,
    created_at: isoTime(row.created_at),
    started_at: isoTimeOrNull(row.started_at),
    finished_at: isoTimeOrNull(row.finished_at),
    timeline: timeline.map(({ at, state, message }) => ({ at: isoTime(at), state, message })),
  };
}

function presentDigest(digest: string | null): { digest: string | null; local: boolean } {
  const imageId = digest === null ? null : imageIdOf(digest);
  return { digest: imageId ?? digest, local: imageId !== null };
}

export function presentRevision(row: RevisionRow): Revision {
  const reason = ineligibleReason(row);
  return {
    id: revisionId(row.number),
    number: row.number,
    environment: row.environment,
    deployment_id: row.deployment_id,
    image: row.image,
    ...presentDigest(row.digest),
    port: row.port,
    health_check: healthCheckOf(row),
    resources: resourcesOf(row),
    state: row.state,
    traffic_percent: row.traffic_percent,
    restored_from: revisionIdOrNull(row.restored_from),
    rollback_eligible: reason === null,
    ineligible_reason: reason,
    created_at: isoTime(row.created_at),
    activated_at: isoTimeOrNull(row.activated_at),
    retired_at: isoTimeOrNull(row.retired_at),
  };
}

/** Why a revision cannot be rolled back to; null: it can. */
export function ineligibleReason({ state, activated_at }: RevisionRow): string | null {
  if (state === 'active') return 'it serves already';
  if (state === 'retired') return 'it is no longer kept';
  if (activated_at === null) return 'it never served all traffic';
  return null;
}
