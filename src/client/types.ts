// The records of the API by name, derived from the operations. When the client is built, the compiler writes those
// types out in full, so that users of the client do not need the contract. Then events, which carry such a record by
// their kind.
import type { Listing, Operation } from './operation.ts';
import type { operations } from './operations.ts';

type Answer<O> = O extends Operation<(...args: never) => Promise<infer T>> ? T : never;
type ItemOf<O> = O extends Operation<(...args: never) => Listing<infer T>> ? T : never;
type Last<T extends unknown[]> = Required<T> extends [...unknown[], infer L, unknown] ? L : never;
/** The argument before the options. */
type Input<O> = O extends Operation<(...args: infer A) => unknown> ? NonNullable<Last<A>> : never;

type All = typeof operations;

export type Overview = Answer<All['overview']['get']>;
export type ProjectOverview = ItemOf<All['overview']['projects']>;
export type EnvironmentOverview = ProjectOverview['environments'][number];
export type DeploymentSummary = ItemOf<All['overview']['deployments']>;
export type AccountAlert = ItemOf<All['overview']['alerts']>;
export type AccountDomain = ItemOf<All['overview']['domains']>;
export type Project = Answer<All['projects']['get']>;
export type CreateProject = Input<All['projects']['create']>;
export type UpdateProject = Input<All['projects']['update']>;
export type Environment = Answer<All['environments']['get']>;
export type CreateEnvironment = Input<All['environments']['create']>;
export type UpdateEnvironment = Input<All['environments']['update']>;
export type Deployment = Answer<All['deployments']['get']>;
export type CreateDeployment = Input<All['deployments']['create']>;
export type DeploymentState = Deployment['state'];
export type Strategy = Deployment['strategy'];
export type FailureCode = NonNullable<Deployment['failure']>['code'];
export type LogLine = Answer<All['deployments']['logs']>['data'][number];
export type LogEntry = ItemOf<All['logs']['list']>;
export type Revision = Answer<All['revisions']['get']>;
export type RevisionChanges = Answer<All['revisions']['compare']>;
export type Instance = ItemOf<All['instances']['list']>;
export type AlertRule = Answer<All['alertRules']['get']>;
export type CreateAlertRule = Input<All['alertRules']['create']>;
export type UpdateAlertRule = Input<All['alertRules']['update']>;
export type Alert = Answer<All['alerts']['get']>;
export type Usage = Answer<All['environments']['usage']>;
export type Metrics = Answer<All['metrics']['get']>;
export type Domain = Answer<All['domains']['get']>;
export type Certificate = NonNullable<Domain['certificate']>;
export type CreateDomain = Input<All['domains']['create']>;
export type Webhook = Answer<All['webhooks']['get']>;
export type WebhookWithSecret = Answer<All['webhooks']['create']>;
export type CreateWebhook = Input<All['webhooks']['create']>;
export type UpdateWebhook = Input<All['webhooks']['update']>;
export type Delivery = ItemOf<All['deliveries']['list']>;
export type DeliveryDetail = Answer<All['deliveries']['get']>;
export type Registry = Answer<All['registries']['get']>;
export type CreateRegistry = Input<All['registries']['create']>;
export type Account = Answer<All['account']['get']>;

export type Token = Answer<All['tokens']['get']>;
export type NewToken = Answer<All['tokens']['create']>;
export type CreateToken = Input<All['tokens']['create']>;
export type Session = ItemOf<All['sessions']['list']>;
export type Scope = Token['scopes'][number];
export type Region = ItemOf<All['regions']['list']>;
export type AuditEntry = ItemOf<All['auditLog']['list']>;

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
