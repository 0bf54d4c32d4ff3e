// An environment, in tabs: what it serves, what was deployed, what runs, what it prints, and its settings.
import { type ReactNode, useState } from 'react';
import type { DeploymentSummary, Environment } from '../../../src/client/index.ts';
import {
  marksOf,
  type Range,
  RangePicker,
  ranges,
  TrafficCharts,
  UsageCharts,
  useUsage,
} from '../components/charts/traffic-charts.tsx';
import { SplitBar, sharesOf } from '../components/charts/traffic-split.tsx';
import { CanarySteps, Phase, ShareBar, stepsOf, Verdict } from '../components/display/canary-progress.tsx';
import { Copyable } from '../components/display/copy.tsx';
import { HealthReason, StateSentence } from '../components/display/health.tsx';
import { Ago } from '../components/display/time.tsx';
import { ConfirmButton } from '../components/forms/actions.tsx';
import { CanaryControls } from '../components/forms/canary-controls.tsx';
import { DeployForm } from '../components/forms/deploy-form.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { EnvironmentSettings } from '../components/forms/environment-settings.tsx';
import { Variables } from '../components/forms/environment-state.tsx';
import { Link, NavLink } from '../components/layout/link.tsx';
import { PageHead, Tabs } from '../components/layout/page-head.tsx';
import { Empty, Shown } from '../components/layout/states.tsx';
import { EnvironmentAlerts } from '../components/sections/alert-rules.tsx';
import { DeploymentTable, useDeployments } from '../components/sections/deployment-list.tsx';
import { EnvironmentDomains } from '../components/sections/domain-list.tsx';
import { Instances, RunningInstances } from '../components/sections/instances.tsx';
import { PendingChanges } from '../components/sections/pending-changes.tsx';
import { Revisions } from '../components/sections/revisions.tsx';
import { useDeployment, useEnvironment } from '../environments.ts';
import { navigate, type Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { isLoading, useList, useRead } from '../use-read.ts';
import { LogsTab } from './logs.tsx';
import { useProject } from './project.tsx';

export function EnvironmentPage({ params }: { params: Params }) {
  const { id, name, tab = '' } = params as { id: string; name: string; tab?: string };
  const project = useProject(id);
  const can = useCan();
  const environment = useEnvironment(id, name);
  const deployments = useDeployments({ project: id, environment: name });
  const { data } = environment;
  const last = deployments.data?.[0] ?? null;
  return (
    <>
      <PageHead
        title={name}
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
        about={
          // Once it is known what was deployed last, which changes the sentence.
          data && !isLoading(deployments) ? <StateSentence environment={data} last={last} /> : <p className="state" />
        }
        actions={
          data ? (
            <Actions project={id} environment={data} last={last} isOverview={tab === ''} />
          ) : (
            <span className="actions-room" />
          )
        }
      />
      <EnvironmentTabs base={`/projects/${id}/environments/${name}`} />
      <Shown of={environment} skeleton={<div className="skeleton-block" />}>
        {(shown) => (
          <>
            <HealthReason health={shown.health} />
            {shown.locked && (
              <p className="incident degraded">
                <strong>Locked</strong> <Ago at={shown.locked.at} />: {shown.locked.reason}
              </p>
            )}
            {tab === '' && (
              <OverviewTab
                project={id}
                environment={shown}
                deployments={deployments.data ?? []}
                isLoaded={deployments.data !== undefined}
              />
            )}
            {tab === 'deployments' && can('deployments:read') && (
              <DeploymentTable of={deployments} where={{ environment: name }} />
            )}
            {tab === 'revisions' && can('deployments:read') && <Revisions project={id} environment={shown} />}
            {tab === 'instances' && can('deployments:read') && <Instances project={id} environment={name} />}
            {tab === 'logs' && can('deployments:read') && <LogsTab project={id} name={name} />}
            {tab === 'variables' && <Variables project={id} environment={shown} />}
            {tab === 'domains' && can('domains:read') && <EnvironmentDomains project={id} environment={name} />}
            {tab === 'alerts' && can('alerts:read') && <EnvironmentAlerts project={id} environment={name} />}
            {tab === 'settings' && (
              <>
                <EnvironmentSettings project={id} environment={shown} />
                {can('projects:write') && <Delete project={id} environment={shown} />}
              </>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

function EnvironmentTabs({ base }: { base: string }) {
  const can = useCan();
  const tab = (path: string, name: string) => <NavLink to={`${base}/${path}`}>{name}</NavLink>;
  return (
    <Tabs label="Environment">
      <NavLink to={base} exact>
        Overview
      </NavLink>
      {can('deployments:read') && (
        <>
          {tab('deployments', 'Deployments')}
          {tab('revisions', 'Revisions')}
          {tab('instances', 'Instances')}
          {tab('logs', 'Logs')}
        </>
      )}
      {tab('variables', 'Variables')}
      {can('domains:read') && tab('domains', 'Domains')}
      {can('alerts:read') && tab('alerts', 'Alerts')}
      {tab('settings', 'Settings')}
    </Tabs>
  );
}

interface ActionsProps {
  project: string;
  environment: Environment;
  last: DeploymentSummary | null;
  isOverview: boolean;
}

function Actions({ project, environment, last, isOverview }: ActionsProps) {
  const can = useCan();
  const { url, locked, active_revision } = environment;
  const inProgress = last && last.finished_at === null ? last : null;
  return (
    <>
      {active_revision !== null && (
        <a className="quiet" href={url} target="_blank" rel="noreferrer">
          Open ↗
        </a>
      )}
      {inProgress && <CanaryControls deployment={inProgress} />}
      {/* The overview of an empty environment has the form itself. */}
      {!inProgress && can('deployments:write') && (active_revision !== null || !isOverview) && (
        <DialogButton
          title={`Deploy to ${environment.name}`}
          label="Deploy…"
          {...(locked !== null && { disabled: `Locked: ${locked.reason}` })}
        >
          {() => <DeployForm project={project} environments={[environment]} {...(last && { image: last.image })} />}
        </DialogButton>
      )}
    </>
  );
}

interface OverviewProps {
  project: string;
  environment: Environment;
  deployments: DeploymentSummary[];
  isLoaded: boolean;
}

const recentShown = 6;

function OverviewTab({ project, environment, deployments, isLoaded }: OverviewProps) {
  const can = useCan();
  const [range, setRange] = useState<Range>('1h');
  const { in_progress_deployment: inProgress, active_revision } = environment;
  const since = Date.now() - ranges[range] * 1000;
  const marks = marksOf(deployments.filter(({ created_at }) => Date.parse(created_at) > since));
  const tried = deployments[0]?.revision ?? null;
  const recent = (
    <section aria-labelledby="recent">
      <h2 id="recent">Recent deployments</h2>
      <DeploymentTable
        of={{
          data: isLoaded ? deployments.slice(0, recentShown) : undefined,
          error: undefined,
          isReading: false,
          hasMore: false,
          loadMore() {},
        }}
        where={{ environment: environment.name }}
        isBrief
      />
    </section>
  );
  if (active_revision === null && inProgress === null) {
    return (
      <>
        <NothingDeployed project={project} environment={environment} />
        {deployments.length > 0 && recent}
      </>
    );
  }
  return (
    <>
      <PendingChanges project={project} environment={environment} />
      {inProgress && can('deployments:read') ? (
        <CanaryCard project={project} id={inProgress} environment={environment} summary={deployments[0] ?? null} />
      ) : (
        <section className="panel hero" aria-label="Traffic">
          <SplitBar shares={sharesOf(environment)} />
          <p className="small">
            <a href={environment.url} target="_blank" rel="noreferrer">
              {environment.url}
            </a>{' '}
            · region {environment.region}
          </p>
        </section>
      )}
      {can('alerts:read') && (
        <section aria-label="Charts">
          <div className="title-row">
            <h2>Traffic</h2>
            <RangePicker range={range} onChange={setRange} />
          </div>
          <TrafficCharts project={project} environment={environment} range={range} marks={marks} tried={tried} />
          {can('deployments:read') && (
            <UsageCharts project={project} environment={environment} range={range} marks={marks} tried={tried} />
          )}
        </section>
      )}
      {can('deployments:read') && (
        <BelowUsage project={project} environment={environment} range={range}>
          {recent}
          <RunningInstances project={project} environment={environment} range={range} />
        </BelowUsage>
      )}
    </>
  );
}

interface BelowUsageProps {
  project: string;
  environment: Environment;
  range: Range;
  children: ReactNode;
}

/** Engines that measure have more charts above this: it comes once that is known, and does not jump then. */
function BelowUsage({ project, environment, range, children }: BelowUsageProps) {
  const usage = useUsage(project, environment, range);
  return isLoading(usage) ? null : <div className="halves">{children}</div>;
}

interface CanaryCardProps {
  project: string;
  id: string;
  environment: Environment;
  summary: DeploymentSummary | null;
}

/** The deployment under way: what it is, where it stands, and what the requests say of it. */
export function CanaryCard({ project, id, environment, summary }: CanaryCardProps) {
  const deployment = useDeployment(project, id);
  const { data } = deployment;
  if (!data) return <div className="panel canary-card skeleton-block" />;
  const { canary, canary_percent, state, revision, image, note, timeline } = data;
  const steps = canary_percent === null ? [] : stepsOf(canary_percent, environment.canary);
  return (
    <section className="panel canary-card" aria-label="Deployment in progress">
      <div className="title-row">
        <p className="row tight">
          <Link to={`/projects/${project}/deployments/${id}`} className="strong">
            {revision}
          </Link>
          <code className="dim">{image}</code>
          <span className="dim">
            {note && `“${note}” · `}
            {summary?.created_by_name && `${summary.created_by_name} · `}
            <Ago at={data.created_at} />
          </span>
        </p>
        {canary ? (
          <Phase canary={canary} of={steps.length} />
        ) : (
          <p className="phase">{timeline.at(-1)?.message ?? state}</p>
        )}
      </div>
      <CanarySteps deployment={data} policy={environment.canary} />
      <ShareBar shares={sharesOf(environment)} />
      {canary && <Verdict deployment={data} canary={canary} policy={environment.canary} url={environment.url} />}
    </section>
  );
}

function NothingDeployed({ project, environment }: { project: string; environment: Environment }) {
  const can = useCan();
  const { data } = useProject(project);
  const regions = useList('regions', (each, page) => each.regions.list(page).page());
  const isStandin = regions.data?.find(({ name }) => name === environment.region)?.engine === 'standin';
  return (
    <div className="halves">
      {can('deployments:write') && environment.locked === null && (
        <section className="panel" aria-labelledby="first-deploy">
          <h2 id="first-deploy">Deploy an image</h2>
          <DeployForm project={project} environments={[environment]} />
        </section>
      )}
      <Empty title="Nothing is deployed here yet.">
        {isStandin ? (
          <p>
            The region {environment.region} is a stand-in: small web servers take the place of containers, and any name
            of an image will do, such as <code>registry.example/shop:1</code>.
          </p>
        ) : (
          <p>
            Any image with a web server will do: it has to listen on the port in its variable <code>PORT</code>, or on
            the one that it exposes.
          </p>
        )}
        <p>
          It answers at <code>{environment.url}</code>. On the command line:
        </p>
        <Copyable
          text={`npx sluice deploy registry.example/shop:1.4 --project ${data?.slug ?? 'shop'} --env ${environment.name}`}
          label="the command"
        />
      </Empty>
    </div>
  );
}

function Delete({ project, environment }: { project: string; environment: Environment }) {
  const { client } = useSignedIn();
  const { name, replicas, active_revision, url } = environment;
  const domains = useRead(`domains/${project}/${name}/names`, async (each) =>
    (await each.domains.list(project, { environment: name, limit: 100 }).page()).data.map(({ hostname }) => hostname),
  );
  const names = domains.data ?? [];
  return (
    <section className="panel danger-zone" aria-labelledby="delete">
      <h2 id="delete">Delete {name}</h2>
      <ConfirmButton
        title={`Delete ${name}?`}
        mustType={name}
        className="quiet bad"
        about={
          <>
            <p>This cannot be undone.</p>
            <ul>
              <li>
                {active_revision === null
                  ? 'No instance runs.'
                  : `${replicas} ${replicas === 1 ? 'instance stops' : 'instances stop'}; ${url} no longer answers.`}
              </li>
              <li>{names.length === 0 ? 'It has no domains.' : `No longer served: ${names.join(', ')}.`}</li>
              <li>Its revisions, variables, alert rules and logs are deleted.</li>
            </ul>
          </>
        }
        verb={`Delete ${name}`}
        run={async () => {
          await client.environments.delete(project, name);
          navigate(`/projects/${project}`);
        }}
        done={`Deleted the environment ${name}.`}
      >
        Delete environment
      </ConfirmButton>
    </section>
  );
}
