// What every response says besides its content: that the service can be reached, and how much of the rate limit is left.
import { Cell } from './cell.ts';

export const reachable = new Cell(true);
/** The service asked us to wait until this time; 0: it did not. */
export const waitUntil = new Cell(0);

let remaining = Number.POSITIVE_INFINITY;

/** `fetch` that keeps `reachable`, `waitUntil` and the remaining requests up to date. */
export const observedFetch: typeof fetch = async (input, init) => {
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch (error) {
    if (!init?.signal?.aborted) reachable.set(false);
    throw error;
  }
  reachable.set(true);
  const left = response.headers.get('x-ratelimit-remaining');
  if (left !== null) remaining = Number(left);
  if (response.status === 429) {
    const seconds = Number(response.headers.get('retry-after')) || 1;
    waitUntil.set(Date.now() + seconds * 1000);
    setTimeout(() => Date.now() >= waitUntil.get() && waitUntil.set(0), seconds * 1000 + 10);
  }
  return response;
};

/** The minimum time between two reads of the same thing: longer as the rate limit comes near. */
export function minGapMs(): number {
  if (remaining < 40) return 5000;
  if (remaining < 150) return 1500;
  return 200;
}
