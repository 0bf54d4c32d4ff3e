// The health of an environment, for people.
import type { Environment } from '../../contract/environments.ts';
import type { Colour, Output } from './output.ts';
import { clean } from './width.ts';

type Health = Environment['health'];

const colours: Record<Health['state'], Colour> = { healthy: 'green', degraded: 'yellow', down: 'red', idle: 'dim' };

export const healthColour = ({ state }: Health): Colour => colours[state];

/** A line about an environment that does not serve as it should; null: it does. */
export function healthLine(where: string, health: Health, out: Pick<Output, 'paint' | 'time'>): string | null {
  const { state, since, reason } = health;
  if (state === 'healthy' || state === 'idle') return null;
  const what = out.paint(healthColour(health), state);
  return `${where} is ${what} since ${out.time(since)}${reason === null ? '' : `: ${clean(reason)}`}`;
}
