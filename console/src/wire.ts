// What every request tells on the side: whether the service can be reached, and how much room the rate limit has left.
import { Cell } from './cell.ts';

export const reachable = new Cell(true);
/** Until when the service has asked us to wait; 0: it has not. */
export const waitUntil = new Cell(0);

let remaining = Number.POSITIVE_INFINITY;

export const watchedFetch: typeof fetch = async (input, init) => {
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

/** The least time between two reads of the same thing: longer as the limit comes near. */
export function gapMs(): number {
  if (remaining < 40) return 5000;
  if (remaining < 150) return 1500;
  return 200;
}
