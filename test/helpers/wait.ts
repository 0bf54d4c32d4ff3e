type Not = undefined | null | false;

/** Polls until `ask` returns something; after the timeout it throws an error that names what it waited for. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | Not> | T | Not,
  timeoutMs = 20_000,
  everyMs = 25,
): Promise<Exclude<T, Not>> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== null && answer !== false) return answer as Exclude<T, Not>;
    if (Date.now() > giveUpAt) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
