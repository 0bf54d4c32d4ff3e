// What goes wrong when a cluster is asked.
import { EngineError, type EngineFault } from '../../engine.ts';

/** The answer of the API (`kind: Status`). */
export interface KubeStatus {
  message?: string;
  reason?: string;
  details?: { retryAfterSeconds?: number; causes?: { reason?: string; message?: string }[] };
}

/** The API answered with an error. */
export class KubeError extends EngineError {
  readonly status: number;
  /** One word: AlreadyExists, Conflict, Forbidden, Expired … */
  readonly reason: string;
  readonly retryAfterMs: number | null;
  /** Another manager has set a field of the object to something else. */
  readonly isFieldConflict: boolean;

  constructor(status: number, answer: KubeStatus, retryAfterMs: number | null) {
    super(faultOf(status), answer.message ?? `Kubernetes answered with status ${status}`);
    this.status = status;
    this.reason = answer.reason ?? '';
    this.retryAfterMs = retryAfterMs;
    this.isFieldConflict = answer.details?.causes?.some(({ reason }) => reason === 'FieldManagerConflict') ?? false;
  }
}

/** Whether the same request may succeed a little later. */
export const mayPass = (status: number): boolean => status === 429 || status >= 500;

function faultOf(status: number): EngineFault {
  return mayPass(status) || status === 401 ? 'unavailable' : 'start_failed';
}

export const isStatus = (error: unknown, ...statuses: number[]): error is KubeError =>
  error instanceof KubeError && statuses.includes(error.status);

/** The API could not be reached, or did not answer in time. */
export const unreachable = (server: string, reason: string, cause?: unknown): EngineError =>
  new EngineError('unavailable', `Kubernetes at ${server} does not answer: ${reason}`, cause);
