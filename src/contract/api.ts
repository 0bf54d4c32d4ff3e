// Every route of the API, in the order the reference shows them.
import * as account from './account.ts';
import * as alertRules from './alert-rules.ts';
import * as alerts from './alerts.ts';
import type { RouteDeclaration } from './declare.ts';
import * as deliveries from './deliveries.ts';
import * as deployments from './deployments.ts';
import * as domains from './domains.ts';
import * as environments from './environments.ts';
import * as events from './events.ts';
import * as instances from './instances.ts';
import * as logs from './logs.ts';
import * as metrics from './metrics.ts';
import * as overview from './overview.ts';
import * as projects from './projects.ts';
import * as registries from './registries.ts';
import * as revisions from './revisions.ts';
import * as service from './service.ts';
import * as sessions from './sessions.ts';
import * as tokens from './tokens.ts';
import * as webhooks from './webhooks.ts';

export const routes: RouteDeclaration[] = [
  overview.getOverview,
  overview.listOverview,
  overview.listAllDeployments,
  overview.listAllAlerts,
  overview.listAllDomains,
  projects.listProjects,
  projects.createProject,
  projects.getProject,
  projects.updateProject,
  projects.deleteProject,
  environments.listEnvironments,
  environments.createEnvironment,
  environments.getEnvironment,
  environments.updateEnvironment,
  environments.deleteEnvironment,
  deployments.listDeployments,
  deployments.createDeployment,
  deployments.getDeployment,
  deployments.promoteDeployment,
  deployments.pauseDeployment,
  deployments.resumeDeployment,
  deployments.abortDeployment,
  deployments.getDeploymentLogs,
  logs.listLogs,
  logs.streamLogs,
  revisions.listRevisions,
  revisions.getRevision,
  revisions.compareRevisions,
  revisions.rollbackEnvironment,
  revisions.redeployEnvironment,
  instances.listInstances,
  alertRules.listAlertRules,
  alertRules.createAlertRule,
  alertRules.getAlertRule,
  alertRules.updateAlertRule,
  alertRules.deleteAlertRule,
  alerts.listAlerts,
  alerts.getAlert,
  alerts.receiveAlertmanager,
  metrics.getMetrics,
  metrics.getUsage,
  domains.listDomains,
  domains.createDomain,
  domains.getDomain,
  domains.deleteDomain,
  domains.verifyDomain,
  domains.renewDomain,
  webhooks.listWebhooks,
  webhooks.createWebhook,
  webhooks.getWebhook,
  webhooks.updateWebhook,
  webhooks.deleteWebhook,
  webhooks.rotateSecret,
  deliveries.testWebhook,
  deliveries.replayWebhook,
  deliveries.listDeliveries,
  deliveries.getDelivery,
  deliveries.redeliver,
  events.listEvents,
  events.streamEvents,
  events.getEvent,
  registries.listRegistries,
  registries.createRegistry,
  registries.getRegistry,
  registries.deleteRegistry,
  tokens.listTokens,
  tokens.createToken,
  tokens.getToken,
  tokens.revokeToken,
  tokens.whoAmI,
  account.getAccount,
  sessions.listSessions,
  sessions.endSession,
  service.listRegions,
  service.listAuditLog,
  service.getOpenApi,
];
