// Server-side apply: says what an object should be, and as whom. Fields that others manage stay theirs: where they differ from
// ours, the API refuses, and so do we.
import { EngineError } from '../engine.ts';
import { fieldManager, type KubeClient } from './api/client.ts';
import { isStatus } from './api/kube-error.ts';
import type { KubeObject } from './api/objects.ts';

const attempts = 5;

export async function apply<T extends KubeObject>(client: KubeClient, path: string, object: object): Promise<T> {
  // JSON is YAML too.
  const contentType = 'application/apply-patch+yaml';
  for (let attempt = 1; ; attempt++) {
    try {
      return await client.request<T>({ method: 'PATCH', path, query: { fieldManager }, contentType, body: object });
    } catch (error) {
      if (!isStatus(error, 409)) throw error;
      if (error.isFieldConflict) {
        const message = `Others have ${path} too, and it is left as it is: ${error.message}`;
        throw new EngineError('start_failed', message, error);
      }
      // Another process of ours writes the same at this moment.
      if (attempt === attempts) throw error;
    }
  }
}

/** null: there is none. */
export async function find<T extends KubeObject>(client: KubeClient, path: string): Promise<T | null> {
  try {
    return await client.request<T>({ path });
  } catch (error) {
    if (isStatus(error, 404)) return null;
    throw error;
  }
}
