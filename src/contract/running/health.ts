// Whether an environment serves its visitors.
import { Choice, Nullable, Shape, Text, Time } from '../declare/shapes.ts';

/** The worst first. */
export const healthStates = ['down', 'degraded', 'healthy', 'idle'] as const;
export type HealthState = (typeof healthStates)[number];

export const healthFields = {
  state: Choice(
    healthStates,
    '`healthy`: as many healthy instances as it should have; `degraded`: fewer, or some that keep ending; `down`: none, ' +
      'so that visitors get 503; `idle`: nothing is deployed.',
  ),
  since: Time('Since when.'),
  reason: Nullable(Text(2000, 'Why it is degraded or down.')),
};

export const Health = Shape(healthFields, { description: 'Whether it serves its visitors.' });
