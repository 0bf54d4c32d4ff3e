/** Asks again and again until the answer is not undefined; says what it waited for when the time is up. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  timeoutMs = 20_000,
  everyMs = 25,
): Promise<T> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > giveUpAt) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
