// Whether an environment serves its visitors, since when it does not, and why.
import type { Environment } from '../../../../src/client/index.ts';
import { Badge } from './badge.tsx';
import { Ago } from './time.tsx';

type Health = Environment['health'];

export const isWrong = ({ state }: Health): boolean => state === 'down' || state === 'degraded';

/** `where`: which environment, if that is not clear from the context. Nothing is shown of one that has nothing deployed. */
export function HealthBadge({ health, where }: { health: Health; where?: string }) {
  if (health.state === 'idle') return null;
  return <Badge state={health.state}>{where === undefined ? health.state : `${where}: ${health.state}`}</Badge>;
}

/** Nothing is shown of one that is as it should be. */
export function HealthReason({ health }: { health: Health }) {
  if (!isWrong(health)) return null;
  return (
    <p className="small">
      <strong>
        {health.state === 'down' ? 'Went down' : 'Became degraded'} <Ago at={health.since} />.
      </strong>{' '}
      {health.reason}
    </p>
  );
}
