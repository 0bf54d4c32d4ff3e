// One deployment: its progress, the traffic split, the metrics of both revisions, and the commands that change it.
import type { Deployment } from '../../../src/client/index.ts';
import { StepComparison } from '../components/charts/comparison.tsx';
import { DeploymentMetrics, refreshMs } from '../components/charts/metric-charts.tsx';
import { SplitBar, sharesOf } from '../components/charts/traffic-split.tsx';
import { Scrolled } from '../components/display/scrolled.tsx';
import { Stepper } from '../components/display/stepper.tsx';
import { Ago } from '../components/display/time.tsx';
import { Timeline } from '../components/display/timeline.tsx';
import { CanaryControls } from '../components/forms/canary-controls.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Shown } from '../components/layout/states.tsx';
import { Logs } from '../components/sections/logs.tsx';
import type { Params } from '../router.ts';
import { useCan } from '../session.ts';
import { useRead } from '../use-read.ts';
import { useProject } from './project.tsx';

export function DeploymentPage({ params }: { params: Params }) {
  const { id, dpl } = params as { id: string; dpl: string };
  const project = useProject(id);
  const deployment = useRead<Deployment>(`deployment/${dpl}`, (client) => client.deployments.get(id, dpl), {
    project: id,
    // No event announces new metrics.
    pollMs: (read) => (read.state === 'canary' ? refreshMs : null),
  });
  const { data } = deployment;
  return (
    <>
      <PageHead
        title={data ? `${data.revision} to ${data.environment}` : 'Deployment'}
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
          [`/projects/${id}/deployments`, 'Deployments'],
        ]}
        actions={data && <CanaryControls deployment={data} />}
      />
      <ProjectTabs id={id} />
      <Shown of={deployment}>{(shown) => <Body deployment={shown} />}</Shown>
    </>
  );
}

function Body({ deployment }: { deployment: Deployment }) {
  const can = useCan();
  const { failure, timeline, project_id: project } = deployment;
  const moments = timeline
    .map(({ at, state, message }, index) => ({ key: `${index}`, at, state, text: message }))
    .reverse();
  return (
    <>
      <section className="panel hero" aria-label="Progress">
        <Stepper deployment={deployment} />
        <Split deployment={deployment} />
        <Facts deployment={deployment} />
      </section>
      {failure && (
        <section className="fault" aria-label="Failure">
          <p>
            <strong>{failure.message}</strong> The previous revision serves all traffic.
          </p>
          {failure.log_tail.length > 0 && (
            <Scrolled label="Last log lines of the failed instance">{failure.log_tail.join('\n')}</Scrolled>
          )}
        </section>
      )}
      {deployment.canary && <StepComparison canary={deployment.canary} deployment={deployment} />}
      {can('alerts:read') && <DeploymentMetrics deployment={deployment} />}
      <section aria-labelledby="timeline">
        <h2 id="timeline">Timeline</h2>
        <Timeline moments={moments} />
      </section>
      <Logs project={project} deployment={deployment.id} />
    </>
  );
}

function Split({ deployment: { project_id: project, environment: name } }: { deployment: Deployment }) {
  const environment = useRead(`environment/${project}/${name}`, (client) => client.environments.get(project, name), {
    project,
    environment: name,
  });
  return environment.data ? <SplitBar shares={sharesOf(environment.data)} /> : null;
}

function Facts({ deployment }: { deployment: Deployment }) {
  const { project_id: project, environment, image, note, strategy, canary_percent, kind, created_at } = deployment;
  return (
    <dl className="facts">
      <dt>Environment</dt>
      <dd>
        <Link to={`/projects/${project}/environments/${environment}`}>{environment}</Link>
      </dd>
      <dt>Image</dt>
      <dd>
        <code>{image}</code>
      </dd>
      <dt>Strategy</dt>
      <dd>
        {kind === 'rollback' ? 'rollback' : strategy.replace('_', '-')}
        {canary_percent !== null && `, ${canary_percent}% initial traffic`}
      </dd>
      <dt>Created</dt>
      <dd>
        <Ago at={created_at} />
      </dd>
      {note && (
        <>
          <dt>Note</dt>
          <dd>{note}</dd>
        </>
      )}
    </dl>
  );
}
