// The types of events, by kind.
import type { Alert, Deployment, Domain, Revision } from './types.ts';

export interface EventRecords {
  'deployment.created': Deployment;
  'deployment.succeeded': Deployment;
  'deployment.failed': Deployment;
  'revision.rolled_back': Revision & { cause: 'manual' | 'analysis' | 'alert' | 'deadline' | 'abort' };
  'alert.fired': Alert;
  'alert.resolved': Alert;
  'domain.certificate_renewed': Domain;
}

export type EventKind = keyof EventRecords;

export interface EventOf<K extends EventKind> {
  id: string;
  type: K;
  created_at: string;
  project_id: string;
  /** Counts the events of the project without gaps. */
  sequence: number;
  /** The record as the API returned it when the event happened. */
  data: EventRecords[K];
}

/** `type` determines which record `data` holds. */
export type SluiceEvent = { [K in EventKind]: EventOf<K> }[EventKind];

/** Something changed there that is not an event: fetch again what you display of it. */
export interface ChangeNotice {
  type: 'changed';
  project_id: string | null;
  environment: string | null;
}
