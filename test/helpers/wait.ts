type Not = undefined | null | false;

/**
 * Polls until `ask` returns something; after the timeout it throws an error that names what it waited for. The timeout is
 * for what never comes: it says nothing about how soon something should come, and is long enough for a busy machine.
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | Not> | T | Not,
  timeoutMs = 60_000,
  everyMs = 25,
): Promise<Exclude<T, Not>> {
  const startedAt = Date.now();
  const giveUpAt = startedAt + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer as Exclude<T, Not>;
    if (Date.now() > giveUpAt) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    // A question costs processor time that what it waits for may need: the longer it takes, the less often it is asked.
    const pauseMs = Math.min(Math.max((Date.now() - startedAt) / 10, everyMs / 2), 4 * everyMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
