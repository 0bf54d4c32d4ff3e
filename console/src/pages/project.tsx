// A project: its environments with what each runs, what was deployed lately, and what happened.
import type { Environment, Project, ProjectOverview } from '../../../src/client/index.ts';
import { Sparkline } from '../components/charts/sparkline.tsx';
import { sharesOf } from '../components/charts/traffic-split.tsx';
import { ShareBar } from '../components/display/canary-progress.tsx';
import { Dot, HealthReason, stateOf } from '../components/display/health.tsx';
import { CanaryControls } from '../components/forms/canary-controls.tsx';
import { DeployForm } from '../components/forms/deploy-form.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Empty, More, Shown, SkeletonRows } from '../components/layout/states.tsx';
import { DeploymentTable, useDeployments } from '../components/sections/deployment-list.tsx';
import { EventTimeline } from '../components/sections/event-timeline.tsx';
import { percent, perSecond, plural, tagOf } from '../format.ts';
import type { Params } from '../router.ts';
import { useCan } from '../session.ts';
import { isLoading, useList, useRead } from '../use-read.ts';
import { LastChange } from './projects.tsx';

export const useProject = (id: string) =>
  useRead<Project>(`project/${id}`, (client) => client.projects.get(id), { project: id });

export const useEnvironments = (id: string) =>
  useList<Environment>(`environments/${id}`, (client, page) => client.environments.list(id, page).page(), {
    project: id,
  });

/** The oldest environment, usually production, comes first. */
export const oldestFirst = (environments: Environment[]): Environment[] => [...environments].reverse();

const refreshMs = 10_000;

/** By its slug, which is unique among those the search finds. */
const useProjectOverview = (project: Project | undefined) =>
  useRead<ProjectOverview | null>(
    `project-overview/${project?.id ?? ''}`,
    async (client) => {
      if (!project) return null;
      for await (const found of client.overview.projects({ search: project.slug, limit: 100 })) {
        if (found.id === project.id) return found;
      }
      return null;
    },
    { ...(project && { project: project.id }), pollMs: () => refreshMs },
  );

export function ProjectPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const overview = useProjectOverview(project.data);
  const read = useEnvironments(id);
  // Shown at once with what they run: what stands below would jump otherwise.
  const environments = isLoading(project) || isLoading(overview) ? { ...read, data: undefined } : read;
  const deployments = useDeployments({ project: id });
  const can = useCan();
  return (
    <>
      <PageHead
        title={project.data?.name ?? 'Project'}
        trail={[['/projects', 'Projects']]}
        actions={
          can('deployments:write') &&
          environments.data &&
          environments.data.length > 0 && (
            <DialogButton title={`Deploy ${project.data?.name ?? ''}`} label="Deploy…">
              {() => <DeployForm project={id} environments={oldestFirst(environments.data!)} />}
            </DialogButton>
          )
        }
      />
      <ProjectTabs id={id} />
      {project.data?.description && <p className="lead">{project.data.description}</p>}
      <Environments id={id} of={environments} overview={overview} />
      {!isLoading(environments) && can('deployments:read') && (
        <section aria-labelledby="recent">
          <h2 id="recent">Recent deployments</h2>
          <DeploymentTable
            of={{ ...deployments, data: deployments.data?.slice(0, 6), hasMore: false }}
            where={{ project: id }}
            isBrief
          />
        </section>
      )}
      {!isLoading(environments) && can('events:read') && (
        <section aria-labelledby="events">
          <h2 id="events">Activity</h2>
          <EventTimeline project={id} />
        </section>
      )}
    </>
  );
}

interface EnvironmentsProps {
  id: string;
  of: ReturnType<typeof useEnvironments>;
  overview: ReturnType<typeof useProjectOverview>;
}

function Environments({ id, of, overview }: EnvironmentsProps) {
  const found = new Map((overview.data?.environments ?? []).map((each) => [each.name, each]));
  return (
    <section aria-label="Environments">
      <Shown of={of} skeleton={<SkeletonRows count={2} />}>
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
                  overview={found.get(environment.name)}
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
  overview: ProjectOverview['environments'][number] | undefined;
}

function EnvironmentCard({ project, environment, overview }: CardProps) {
  const { name, url, health, active_revision } = environment;
  const last = overview?.last_deployment ?? null;
  const at = `/projects/${project}/environments/${name}`;
  const requests = overview?.requests;
  return (
    <li className="panel environment-card">
      <div className="title-row">
        <h2>
          <Link to={at}>{name}</Link>
        </h2>
        <p className="state">
          <Dot health={health} last={last} /> {stateOf(environment, last)}
        </p>
        {overview && (overview.firing_alerts ?? 0) > 0 && (
          <Link to={`${at}/alerts`} className="alerting">
            {plural(overview.firing_alerts!, 'alert')} firing
          </Link>
        )}
        <span className="row tight end">
          {last && last.finished_at === null && <CanaryControls deployment={last} isBrief />}
        </span>
      </div>
      <HealthReason health={health} />
      {environment.traffic.length > 0 && <ShareBar shares={sharesOf(environment)} />}
      <dl className="facts across">
        {(active_revision !== null || last !== null) && (
          <>
            <div>
              <dt>Live</dt>
              <dd className="mono">
                {active_revision ?? 'none'} {overview?.image && tagOf(overview.image)}
              </dd>
            </div>
            <div>
              <dt>Requests, 1 h</dt>
              <dd className="row tight">
                {requests?.rates.some((rate) => rate > 0) ? (
                  <>
                    <Sparkline values={requests.rates} label="Requests of the last hour" /> {perSecond(requests.rate)}
                  </>
                ) : (
                  'none'
                )}
              </dd>
            </div>
            <div>
              <dt>Errors</dt>
              <dd>{requests?.error_rate == null ? '–' : percent(requests.error_rate)}</dd>
            </div>
            <div>
              <dt>Last change</dt>
              <dd>{last ? <LastChange last={last} /> : '–'}</dd>
            </div>
          </>
        )}
        <div>
          <dt>Address</dt>
          <dd>
            <a href={url} target="_blank" rel="noreferrer">
              {url}
            </a>
          </dd>
        </div>
      </dl>
      {environment.locked && <p className="small">Locked: {environment.locked.reason}</p>}
    </li>
  );
}
