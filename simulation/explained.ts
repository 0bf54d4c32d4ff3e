import { EngineError } from '../src/engines/engine.ts';
import { ConnectionLost } from './database.ts';

/** Whether a fault that was injected explains this error. */
export function isExplained(error: unknown): boolean {
  if (error instanceof ConnectionLost || error instanceof EngineError) return true;
  const { errcode, cause } = (error ?? {}) as { errcode?: number; cause?: unknown };
  return errcode === 13 || (cause !== undefined && isExplained(cause));
}
