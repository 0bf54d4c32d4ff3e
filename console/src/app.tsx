// Maps addresses to pages.
import { type ComponentType, useEffect } from 'react';
import { useCell } from './cell.ts';
import { Boundary } from './components/layout/boundary.tsx';
import { Link } from './components/layout/link.tsx';
import { PageHead } from './components/layout/page-head.tsx';
import { openPalette } from './components/layout/palette.tsx';
import { Shell } from './components/layout/shell.tsx';
import { Empty } from './components/layout/states.tsx';
import { followChanges } from './live.ts';
import { AccountPage } from './pages/account.tsx';
import { AlertsPage, AllAlertsPage } from './pages/alerts.tsx';
import { AuditPage } from './pages/audit.tsx';
import { CataloguePage } from './pages/catalogue.tsx';
import { DeliveryPage } from './pages/delivery.tsx';
import { DeploymentPage } from './pages/deployment.tsx';
import { AllDeploymentsPage, DeploymentsPage } from './pages/deployments.tsx';
import { AllDomainsPage, DomainsPage } from './pages/domains.tsx';
import { EnvironmentPage } from './pages/environment.tsx';
import { EventsPage } from './pages/events.tsx';
import { ProjectPage } from './pages/project.tsx';
import { ProjectSettingsPage } from './pages/project-settings.tsx';
import { ProjectsPage } from './pages/projects.tsx';
import { RegionsPage, RegistriesPage } from './pages/registries.tsx';
import { SessionPage } from './pages/session.tsx';
import { SignInPage } from './pages/sign-in.tsx';
import { TokensPage } from './pages/tokens.tsx';
import { WebhookPage } from './pages/webhook.tsx';
import { WebhooksPage } from './pages/webhooks.tsx';
import { matchPath, type Params, pageOf, usePath } from './router.ts';
import { session } from './session.ts';

const routes: [pattern: string, page: ComponentType<{ params: Params }>][] = [
  ['/projects', ProjectsPage],
  ['/projects/new', ProjectsPage],
  ['/projects/:id', ProjectPage],
  ['/projects/:id/deployments', DeploymentsPage],
  ['/projects/:id/deployments/:dpl', DeploymentPage],
  ['/projects/:id/environments/:name', EnvironmentPage],
  ['/projects/:id/environments/:name/:tab', EnvironmentPage],
  ['/projects/:id/alerts', AlertsPage],
  ['/projects/:id/domains', DomainsPage],
  ['/projects/:id/settings', ProjectSettingsPage],
  ['/deployments', AllDeploymentsPage],
  ['/alerts', AllAlertsPage],
  ['/domains', AllDomainsPage],
  ['/events', EventsPage],
  ['/registries', RegistriesPage],
  ['/regions', RegionsPage],
  ['/webhooks', WebhooksPage],
  ['/webhooks/:whk', WebhookPage],
  ['/webhooks/:whk/deliveries/:dlv', DeliveryPage],
  ['/tokens', TokensPage],
  ['/account', AccountPage],
  ['/audit', AuditPage],
  ['/catalogue', CataloguePage],
  ['/session', SessionPage],
];

export function App() {
  const now = useCell(session);
  const path = usePath();
  const client = now.status === 'in' ? now.client : null;
  useEffect(() => (client ? followChanges(client) : undefined), [client]);
  if (now.status === 'checking') {
    return (
      <main className="sign-in">
        <p className="loading" role="status">
          Connecting to the service…
        </p>
      </main>
    );
  }
  if (now.status === 'out') return <SignInPage message={now.message} />;
  return (
    <Shell>
      {/* Keyed by the page: another one of the same kind starts with empty forms and without an old error. */}
      <Boundary key={pageOf(path)}>
        <Page path={path} />
      </Boundary>
    </Shell>
  );
}

function Page({ path }: { path: string }) {
  for (const [pattern, Found] of routes) {
    const params = matchPath(pattern, path);
    if (params) return <Found params={params} />;
  }
  return (
    <>
      <PageHead title="Page not found" />
      <Empty title="There is nothing at this address.">
        <p>
          <code>{path}</code> is no page of the console. It may have been deleted, or the address is incomplete.
        </p>
        <div className="row">
          <Link to="/projects" className="quiet">
            All projects
          </Link>
          <button type="button" className="quiet" onClick={openPalette}>
            Search or jump…
          </button>
        </div>
      </Empty>
    </>
  );
}
