import type { Environment, Revision } from '../../../src/client/index.ts';
import { SplitBar, sharesOf } from '../components/charts/traffic-split.tsx';
import { UsageCharts } from '../components/charts/usage-charts.tsx';
import { Badge } from '../components/display/badge.tsx';
import { HealthBadge, HealthReason } from '../components/display/health.tsx';
import { Ago } from '../components/display/time.tsx';
import { ConfirmButton } from '../components/forms/actions.tsx';
import { DeployForm } from '../components/forms/deploy-form.tsx';
import { EnvironmentSettings } from '../components/forms/environment-settings.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { Instances } from '../components/sections/instances.tsx';
import { PendingChanges } from '../components/sections/pending-changes.tsx';
import { navigate, type Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useList, useRead } from '../use-read.ts';
import { useProject } from './project.tsx';

export function EnvironmentPage({ params }: { params: Params }) {
  const { id, name } = params as { id: string; name: string };
  const project = useProject(id);
  const can = useCan();
  const environment = useRead<Environment>(`environment/${id}/${name}`, (client) => client.environments.get(id, name), {
    project: id,
    environment: name,
  });
  return (
    <>
      <PageHead
        title={name}
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
      />
      <ProjectTabs id={id} />
      <Shown of={environment}>
        {(data) => (
          <>
            <Overview project={id} environment={data} />
            {can('deployments:read') && <Instances project={id} environment={name} />}
            <PendingChanges project={id} environment={data} />
            {can('deployments:write') && data.locked === null && (
              <section className="panel" aria-labelledby="deploy">
                <h2 id="deploy">Deploy</h2>
                <DeployForm project={id} environments={[data]} />
              </section>
            )}
            {can('deployments:read') && data.active_revision !== null && (
              <UsageCharts project={id} environment={data} />
            )}
            {can('deployments:read') && <Revisions project={id} environment={data} />}
            {can('projects:write') && <EnvironmentSettings project={id} environment={data} />}
            {can('projects:write') && <Delete project={id} name={name} />}
          </>
        )}
      </Shown>
    </>
  );
}

function Overview({ project, environment }: { project: string; environment: Environment }) {
  const { url, region, active_revision, in_progress_deployment: deployment, locked } = environment;
  return (
    <section className="panel hero" aria-label="Traffic">
      <div className="row">
        <HealthBadge health={environment.health} />
      </div>
      <HealthReason health={environment.health} />
      <SplitBar shares={sharesOf(environment)} />
      <dl className="facts">
        <dt>URL</dt>
        <dd>
          <a href={url} target="_blank" rel="noreferrer">
            {url}
          </a>
        </dd>
        <dt>Region</dt>
        <dd>{region}</dd>
        <dt>Live revision</dt>
        <dd>{active_revision ?? 'none'}</dd>
        <dt>Logs</dt>
        <dd>
          <Link to={`/projects/${project}/environments/${environment.name}/logs`}>View logs</Link>
        </dd>
        {deployment && (
          <>
            <dt>In progress</dt>
            <dd>
              <Link to={`/projects/${project}/deployments/${deployment}`}>View deployment</Link>
            </dd>
          </>
        )}
        {locked && (
          <>
            <dt>Locked</dt>
            <dd>
              {locked.reason} (<Ago at={locked.at} />)
            </dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Revisions({ project, environment }: { project: string; environment: Environment }) {
  const { name } = environment;
  const { client } = useSignedIn();
  const can = useCan();
  const revisions = useList<Revision>(
    `revisions/${project}/${name}`,
    (each, page) => each.revisions.list(project, name, page).page(),
    { project, environment: name },
  );
  const rollback = async (revision: string) => {
    const { id } = await client.environments.rollback(project, name, { revision });
    navigate(`/projects/${project}/deployments/${id}`);
  };
  const mayRollBack = can('deployments:write') && environment.in_progress_deployment === null;
  return (
    <section aria-labelledby="revisions">
      <h2 id="revisions">Revisions</h2>
      <Shown of={revisions}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No revisions yet.">The first deployment creates r1.</Empty>
          ) : (
            <Table
              label="Revisions"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Revision',
                  cell: ({ id, deployment_id }) => (
                    <Link to={`/projects/${project}/deployments/${deployment_id}`}>{id}</Link>
                  ),
                },
                { name: 'State', cell: ({ state }) => <Badge state={state} /> },
                { name: 'Traffic', cell: ({ traffic_percent }) => `${traffic_percent}%` },
                { name: 'Image', cell: ({ image }) => <code>{image}</code> },
                { name: 'Created', cell: ({ created_at }) => <Ago at={created_at} /> },
                {
                  name: 'Roll back',
                  quiet: true,
                  cell: ({ id, rollback_eligible, image }) =>
                    rollback_eligible && mayRollBack ? (
                      <ConfirmButton
                        title={`Roll back to ${id}?`}
                        about={`This creates a new revision with the image (${image}), variables and settings of ${id}, and sends it all traffic.`}
                        verb={`Roll back to ${id}`}
                        run={() => rollback(id)}
                      >
                        Roll back to {id}
                      </ConfirmButton>
                    ) : null,
                },
              ]}
            />
          )
        }
      </Shown>
      <More of={revisions} />
    </section>
  );
}

function Delete({ project, name }: { project: string; name: string }) {
  const { client } = useSignedIn();
  return (
    <section className="row" aria-label="Delete">
      <ConfirmButton
        title={`Delete ${name}?`}
        about="This stops all its instances and deletes its revisions, variables and domains. It cannot be undone."
        verb={`Delete ${name}`}
        run={async () => {
          await client.environments.delete(project, name);
          navigate(`/projects/${project}`);
        }}
        done={`Deleted ${name}.`}
      >
        Delete environment
      </ConfirmButton>
    </section>
  );
}
