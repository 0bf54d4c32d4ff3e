// Reads back what an instance of the image `counting` has printed.
import { createClient } from '../../src/client/index.ts';
import { adminToken } from './app.ts';

const environment = 'production';

export interface Counted {
  /** How many numbers came, each right behind the one before. */
  inOrder: number;
  /** The first one that did not. */
  wrong: string | null;
}

export async function readCounted(url: string, project: string): Promise<Counted> {
  const client = createClient({ url, token: adminToken, maxRetries: 20 });
  let inOrder = 0;
  let wrong: string | null = null;
  for await (const { text, stream } of client.logs.list(project, environment, { order: 'oldest', limit: 1000 })) {
    if (stream !== 'stdout') wrong ??= `${inOrder}: ${text}`;
    else if (Number(text) === inOrder + 1) inOrder++;
    else wrong ??= `behind ${inOrder}: ${text}`;
  }
  return { inOrder, wrong };
}

/** The latest number that is stored; 0: none. */
export async function latestNumber(url: string, project: string): Promise<number> {
  const client = createClient({ url, token: adminToken, maxRetries: 20 });
  const { data } = await client.logs.list(project, environment, { limit: 1 }).page();
  return Number(data[0]?.text ?? 0);
}
