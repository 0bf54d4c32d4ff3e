import { ask } from './router.ts';

/** The share of new visitors who see the revision that answers `canary`. */
export async function canaryShareOf(port: number, visitors: number): Promise<number> {
  let seen = 0;
  for (let n = 0; n < visitors; n += 20) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(port)));
    seen += answers.filter(({ body }) => body === 'canary').length;
  }
  return seen / visitors;
}
