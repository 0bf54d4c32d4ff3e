type Not = undefined | null | false;

/** Asks again and again until there is an answer; says what it waited for when the time is up. */
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
