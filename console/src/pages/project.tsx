import type { Alert, Environment, Project } from '../../../src/client/index.ts';
import { SplitBar, sharesOf } from '../components/charts/traffic-split.tsx';
import { Badge } from '../components/display/badge.tsx';
import { HealthBadge, HealthReason } from '../components/display/health.tsx';
import { DeployForm } from '../components/forms/deploy-form.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { EventTimeline } from '../components/sections/event-timeline.tsx';
import type { Params } from '../router.ts';
import { useCan } from '../session.ts';
import { useList, useRead } from '../use-read.ts';

export const useProject = (id: string) =>
  useRead<Project>(`project/${id}`, (client) => client.projects.get(id), { project: id });

export const useEnvironments = (id: string) =>
  useList<Environment>(`environments/${id}`, (client, page) => client.environments.list(id, page).page(), {
    project: id,
  });

const trail: [string, string][] = [['/projects', 'Projects']];

export function ProjectPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const environments = useEnvironments(id);
  const can = useCan();
  return (
    <>
      <PageHead title={project.data?.name ?? 'Project'} trail={trail} />
      <ProjectTabs id={id} />
      {project.data?.description && <p className="lead">{project.data.description}</p>}
      {can('alerts:read') ? (
        <WithAlerts id={id} of={environments} />
      ) : (
        <Environments id={id} of={environments} firing={[]} />
      )}
      {can('deployments:write') && environments.data && environments.data.length > 0 && (
        <section className="panel" aria-labelledby="deploy">
          <h2 id="deploy">Deploy</h2>
          <DeployForm project={id} environments={oldestFirst(environments.data)} />
        </section>
      )}
      {can('events:read') && (
        <section aria-labelledby="events">
          <h2 id="events">Activity</h2>
          <EventTimeline project={id} />
        </section>
      )}
    </>
  );
}

/** The oldest environment, usually production, comes first. */
export const oldestFirst = (environments: Environment[]): Environment[] => [...environments].reverse();

type EnvironmentList = ReturnType<typeof useEnvironments>;

function WithAlerts({ id, of }: { id: string; of: EnvironmentList }) {
  const firing = useList<Alert>(
    `alerts/${id}/firing`,
    (client, page) => client.alerts.list(id, { ...page, state: 'firing' }).page(),
    { project: id },
  );
  return <Environments id={id} of={of} firing={firing.data ?? []} />;
}

function Environments({ id, of, firing }: { id: string; of: EnvironmentList; firing: Alert[] }) {
  return (
    <section aria-label="Environments">
      <Shown of={of}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No environments.">
              Create one under <Link to={`/projects/${id}/settings`}>Settings</Link>, then deploy to it.
            </Empty>
          ) : (
            <ul className="environments">
              {oldestFirst(items).map((environment) => (
                <EnvironmentCard
                  key={environment.name}
                  project={id}
                  environment={environment}
                  firing={firing.filter((alert) => alert.environment === environment.name)}
                />
              ))}
            </ul>
          )
        }
      </Shown>
      <More of={of} />
    </section>
  );
}

interface CardProps {
  project: string;
  environment: Environment;
  firing: Alert[];
}

function EnvironmentCard({ project, environment, firing }: CardProps) {
  const { name, url, health, locked, in_progress_deployment: deployment } = environment;
  return (
    <li className="panel">
      <div className="title-row">
        <h2>
          <Link to={`/projects/${project}/environments/${name}`}>{name}</Link>
        </h2>
        <p className="row">
          <HealthBadge health={health} />
          {locked && <Badge state="locked" />}
          {firing.length > 0 && (
            <Link to={`/projects/${project}/alerts`}>
              <Badge state="firing">{firing.length === 1 ? '1 alert firing' : `${firing.length} alerts firing`}</Badge>
            </Link>
          )}
          {deployment && <Link to={`/projects/${project}/deployments/${deployment}`}>Deployment in progress</Link>}
        </p>
      </div>
      <HealthReason health={health} />
      <SplitBar shares={sharesOf(environment)} />
      <p className="small">
        <a href={url} target="_blank" rel="noreferrer">
          {url}
        </a>
      </p>
      {locked && <p className="small">Locked: {locked.reason}</p>}
    </li>
  );
}
