// Every route of the API as a method of the client. Only types are imported from the contract, so that the client has no
// dependency at run time. A test checks that this table and the contract have the same routes.
import type * as account from '../contract/account.ts';
import type * as alertRules from '../contract/alert-rules.ts';
import type * as alerts from '../contract/alerts.ts';
import type * as deliveries from '../contract/deliveries.ts';
import type * as deployments from '../contract/deployments.ts';
import type * as domains from '../contract/domains.ts';
import type * as environments from '../contract/environments.ts';
import type * as instances from '../contract/instances.ts';
import type * as logs from '../contract/logs.ts';
import type * as metrics from '../contract/metrics.ts';
import type * as overview from '../contract/overview.ts';
import type * as projects from '../contract/projects.ts';
import type * as registries from '../contract/registries.ts';
import type * as revisions from '../contract/revisions.ts';
import type * as service from '../contract/service.ts';
import type * as sessions from '../contract/sessions.ts';
import type * as tokens from '../contract/tokens.ts';
import type * as webhooks from '../contract/webhooks.ts';
import { command, create, find, follow, get, list, post, remove, removeWith, update } from './method.ts';

const project = '/projects/{id}';
const environment = `${project}/environments/{name}`;
const deployment = `${project}/deployments/{dpl}`;
const rule = `${project}/alert-rules/{rul}`;
const domain = `${project}/domains/{dom}`;
const webhook = '/webhooks/{whk}';
const delivery = `${webhook}/deliveries/{dlv}`;

export const operations = {
  overview: {
    get: get<typeof overview.getOverview>('/overview'),
    projects: list<typeof overview.listOverview>('/overview/projects'),
    deployments: list<typeof overview.listAllDeployments>('/deployments'),
    alerts: list<typeof overview.listAllAlerts>('/alerts'),
    domains: list<typeof overview.listAllDomains>('/domains'),
  },
  projects: {
    list: list<typeof projects.listProjects>('/projects'),
    create: create<typeof projects.createProject>('/projects'),
    get: get<typeof projects.getProject>(project),
    update: update<typeof projects.updateProject>(project),
    delete: remove<typeof projects.deleteProject>(project),
  },
  environments: {
    list: list<typeof environments.listEnvironments>(`${project}/environments`),
    create: create<typeof environments.createEnvironment>(`${project}/environments`),
    get: get<typeof environments.getEnvironment>(environment),
    update: update<typeof environments.updateEnvironment>(environment),
    delete: remove<typeof environments.deleteEnvironment>(environment),
    rollback: create<typeof revisions.rollbackEnvironment>(`${environment}/rollback`),
    redeploy: create<typeof revisions.redeployEnvironment>(`${environment}/redeploy`),
    usage: find<typeof metrics.getUsage>(`${environment}/usage`),
  },
  deployments: {
    list: list<typeof deployments.listDeployments>(`${project}/deployments`),
    create: create<typeof deployments.createDeployment>(`${project}/deployments`),
    get: get<typeof deployments.getDeployment>(deployment),
    promote: command<typeof deployments.promoteDeployment>(`${deployment}/promote`),
    pause: command<typeof deployments.pauseDeployment>(`${deployment}/pause`),
    resume: command<typeof deployments.resumeDeployment>(`${deployment}/resume`),
    abort: command<typeof deployments.abortDeployment>(`${deployment}/abort`),
    logs: find<typeof deployments.getDeploymentLogs>(`${deployment}/logs`),
  },
  logs: {
    list: list<typeof logs.listLogs>(`${environment}/logs`),
    stream: follow<typeof logs.streamLogs, logs.LogEntry>(`${environment}/logs/stream`),
  },
  revisions: {
    list: list<typeof revisions.listRevisions>(`${environment}/revisions`),
    get: get<typeof revisions.getRevision>(`${environment}/revisions/{r}`),
    compare: find<typeof revisions.compareRevisions>(`${environment}/revisions/{r}/changes`),
  },
  instances: { list: list<typeof instances.listInstances>(`${environment}/instances`) },
  alertRules: {
    list: list<typeof alertRules.listAlertRules>(`${project}/alert-rules`),
    create: create<typeof alertRules.createAlertRule>(`${project}/alert-rules`),
    get: get<typeof alertRules.getAlertRule>(rule),
    update: update<typeof alertRules.updateAlertRule>(rule),
    delete: remove<typeof alertRules.deleteAlertRule>(rule),
  },
  alerts: {
    list: list<typeof alerts.listAlerts>(`${project}/alerts`),
    get: get<typeof alerts.getAlert>(`${project}/alerts/{alr}`),
    alertmanager: post<typeof alerts.receiveAlertmanager>(`${project}/alerts/alertmanager`),
  },
  metrics: {
    get: find<typeof metrics.getMetrics>(`${project}/metrics`),
  },
  domains: {
    list: list<typeof domains.listDomains>(`${project}/domains`),
    create: create<typeof domains.createDomain>(`${project}/domains`),
    get: get<typeof domains.getDomain>(domain),
    delete: remove<typeof domains.deleteDomain>(domain),
    verify: command<typeof domains.verifyDomain>(`${domain}/verify`),
    renew: command<typeof domains.renewDomain>(`${domain}/renew`),
  },
  webhooks: {
    list: list<typeof webhooks.listWebhooks>('/webhooks'),
    create: create<typeof webhooks.createWebhook>('/webhooks'),
    get: get<typeof webhooks.getWebhook>(webhook),
    update: update<typeof webhooks.updateWebhook>(webhook),
    delete: remove<typeof webhooks.deleteWebhook>(webhook),
    rotateSecret: create<typeof webhooks.rotateSecret>(`${webhook}/rotate-secret`),
    test: command<typeof deliveries.testWebhook>(`${webhook}/test`),
    replay: create<typeof deliveries.replayWebhook>(`${webhook}/replay`),
  },
  deliveries: {
    list: list<typeof deliveries.listDeliveries>(`${webhook}/deliveries`),
    get: get<typeof deliveries.getDelivery>(delivery),
    redeliver: command<typeof deliveries.redeliver>(`${delivery}/redeliver`),
  },
  registries: {
    list: list<typeof registries.listRegistries>('/registries'),
    create: create<typeof registries.createRegistry>('/registries'),
    get: get<typeof registries.getRegistry>('/registries/{reg}'),
    delete: remove<typeof registries.deleteRegistry>('/registries/{reg}'),
  },
  tokens: {
    list: list<typeof tokens.listTokens>('/tokens'),
    create: create<typeof tokens.createToken>('/tokens'),
    get: get<typeof tokens.getToken>('/tokens/{tok}'),
    revoke: removeWith<typeof tokens.revokeToken>('/tokens/{tok}'),
  },
  token: { get: get<typeof tokens.whoAmI>('/token') },
  account: { get: get<typeof account.getAccount>('/account') },
  sessions: {
    list: list<typeof sessions.listSessions>('/sessions'),
    end: remove<typeof sessions.endSession>('/sessions/{ses}'),
  },
  regions: { list: list<typeof service.listRegions>('/regions') },
  auditLog: { list: list<typeof service.listAuditLog>('/audit-log') },
  openapi: { get: get<typeof service.getOpenApi, Record<string, unknown>>('/openapi.json') },
};
