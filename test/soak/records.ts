// What was done and seen during a run, as the checks read it.
import type { FaultKind } from './plan.ts';

export type Plane = 'builtin' | 'haproxy';
export type DatabaseKind = 'postgres' | 'sqlite';

export interface FaultRecord {
  kind: FaultKind;
  service: string | null;
  /** Of the process that it befell. */
  pid: number | null;
  /** Nobody could visit the service meanwhile. */
  takesRouter: boolean;
  fromMs: number;
  /** When everything that it took away was back; Infinity: not yet. */
  toMs: number;
}

export interface FailedVisit {
  service: string;
  plane: Plane;
  site: string;
  /** The router worker that had the connection; null: not known. */
  worker: number | null;
  /** When its connection was last known to be good. */
  fromMs: number;
  toMs: number;
  reason: string;
}

/** A POST that was answered with 2xx. */
export interface Acknowledged {
  what: 'project' | 'deployment' | 'abort';
  id: string;
}

export interface Arrival {
  id: string;
  sha256: string;
  signature: string;
}

/** What there is once everything is calm. */
export interface Facts {
  projects: { id: string; name: string; next_sequence: number }[];
  deployments: {
    id: string;
    note: string | null;
    state: string;
    failure_code: string | null;
    finished_at: number | null;
  }[];
  events: { id: string; type: string; project_id: string; sequence: number; body: string }[];
  unfinishedDeliveries: number;
  receivers: { secret: string; isStrict: boolean; arrivals: Arrival[] }[];
  instanceRows: { id: string; state: string }[];
  containers: { id: string; state: string }[];
  /** Of each environment that serves: the sum of its shares. */
  shares: { environment: string; percent: number }[];
}
