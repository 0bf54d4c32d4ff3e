// Whether an environment serves its visitors, what happened to it last, and why it does not serve.
import type { DeploymentSummary, Environment } from '../../../../src/client/index.ts';
import { Badge } from './badge.tsx';
import { Ago } from './time.tsx';

type Health = Environment['health'];
type Last = Pick<DeploymentSummary, 'state' | 'revision' | 'failure' | 'finished_at' | 'canary' | 'kind'>;

export const isWrong = ({ state }: Health): boolean => state === 'down' || state === 'degraded';
const hasFailed = (last: Last | null | undefined): boolean => last?.state === 'failed' || last?.state === 'canceled';

const undoneFor = new Set(['analysis_failed', 'alert_fired', 'approval_timeout']);
/** It had requests, which the previous revision got back; any other failure may have come before it had one. */
export const wasUndone = (code: string): boolean => undoneFor.has(code);

/** What became of a deployment that did not succeed. */
export const endOf = ({ failure }: Pick<Last, 'failure'>): string =>
  failure === null || failure.code === 'aborted' ? 'aborted' : wasUndone(failure.code) ? 'undone' : 'failed';

/** Why it failed, for where there is little room: of a comparison, the side of the canary. */
export function reasonOf({ code, message }: NonNullable<Last['failure']>): string {
  const text = code === 'analysis_failed' ? message.replace(/^[^:]*: /, '').replace(/;.*$/s, '') : message;
  return text.replace(/\.$/, '').replaceAll(' %', '\u00a0%');
}

/** Its shape says the same as its colour. */
export function Dot({ health, last }: { health: Health; last?: Last | null }) {
  const tone = health.state === 'healthy' && hasFailed(last) ? 'undone' : health.state;
  return <span className={`dot ${tone}`} aria-hidden="true" />;
}

/** The state in two or three words, for lists. */
export function stateOf(
  { health, active_revision }: { health: Health; active_revision: string | null },
  last: Last | null,
): string {
  if (health.state === 'idle') return active_revision === null ? 'nothing deployed' : 'idle';
  if (isWrong(health)) return health.state;
  if (last && last.finished_at === null) return 'healthy';
  if (last && hasFailed(last)) return `healthy, ${last.revision} ${endOf(last)}`;
  return 'healthy';
}

/** One sentence: what serves, and what happened last. */
export function StateSentence({ environment, last }: { environment: Environment; last: Last | null }) {
  const { health, active_revision } = environment;
  const on = active_revision === null ? '' : ` on ${active_revision}`;
  return (
    <p className="state">
      <Dot health={health} last={last} />
      {health.state === 'idle' ? (
        'nothing deployed yet'
      ) : isWrong(health) ? (
        <span className="wrong">
          {health.state}
          {on}
        </span>
      ) : last?.state === 'canary' ? (
        `healthy${on}, ${last.revision} runs as a canary`
      ) : last && last.finished_at === null ? (
        `healthy${on}, ${last.revision} is being deployed`
      ) : last && hasFailed(last) ? (
        <span>
          healthy{on} · {last.revision} {endOf(last)} {last.finished_at && <Ago at={last.finished_at} />}
          {last.failure && last.failure.code !== 'aborted' && `: ${reasonOf(last.failure)}`}
        </span>
      ) : (
        `healthy${on}`
      )}
      {environment.locked && <Badge state="locked">locked</Badge>}
    </p>
  );
}

/** Nothing is shown of one that is as it should be. */
export function HealthReason({ health }: { health: Health }) {
  if (!isWrong(health)) return null;
  return (
    <p className={`incident ${health.state}`} role="status">
      <strong>
        {health.state === 'down' ? 'Went down' : 'Became degraded'} <Ago at={health.since} />.
      </strong>{' '}
      {health.reason}
    </p>
  );
}
