// One deployment: where it stands or how it ended, what its requests said in its own time, what it changed, and its logs.
import { useMemo } from 'react';
import type { Deployment, Metrics } from '../../../src/client/index.ts';
import type { Mark, Tone } from '../components/charts/time-chart.tsx';
import { ChartsSkeleton, TrafficChartRow } from '../components/charts/traffic-charts.tsx';
import { wasUndone } from '../components/display/health.tsx';
import { Scrolled } from '../components/display/scrolled.tsx';
import { Stepper } from '../components/display/stepper.tsx';
import { Ago, duration } from '../components/display/time.tsx';
import { Timeline } from '../components/display/timeline.tsx';
import { CanaryControls } from '../components/forms/canary-controls.tsx';
import { DeployForm } from '../components/forms/deploy-form.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, Shown } from '../components/layout/states.tsx';
import { Logs } from '../components/sections/logs.tsx';
import { Comparison } from '../components/sections/revisions.tsx';
import { useDeployment, useEnvironment } from '../environments.ts';
import { capitalised } from '../format.ts';
import type { Params } from '../router.ts';
import { useCan } from '../session.ts';
import { isLoading, useRead } from '../use-read.ts';
import { CanaryCard } from './environment.tsx';
import { useProject } from './project.tsx';

export function DeploymentPage({ params }: { params: Params }) {
  const { id, dpl } = params as { id: string; dpl: string };
  const project = useProject(id);
  const deployment = useDeployment(id, dpl);
  const { data } = deployment;
  const name = data?.environment ?? '';
  return (
    <>
      <PageHead
        title={data ? titleOf(data) : 'Deployment'}
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
          ...(data
            ? ([
                [`/projects/${id}/environments/${name}`, name],
                [`/projects/${id}/environments/${name}/deployments`, 'Deployments'],
              ] as [string, string][])
            : []),
        ]}
        about={data && <Outcome deployment={data} />}
        actions={
          data && (data.finished_at === null ? <CanaryControls deployment={data} /> : <Next deployment={data} />)
        }
      />
      <Shown of={deployment} skeleton={<div className="skeleton-block" />}>
        {(shown) => <Body deployment={shown} />}
      </Shown>
    </>
  );
}

/** Messages of engines begin and end as they like. */
const sentence = (text: string): string => `${capitalised(text)}${/[.!?]$/.test(text) ? '' : '.'}`;

const isUndone = ({ state }: Deployment): boolean => state === 'failed' || state === 'canceled';

const reached = (timeline: Deployment['timeline'], ...states: Deployment['state'][]) =>
  timeline.find(({ state }) => states.includes(state));

const tookRequests = (timeline: Deployment['timeline']): boolean =>
  reached(timeline, 'canary', 'promoting') !== undefined;

function titleOf({ revision, state, kind, environment, failure, timeline }: Deployment): string {
  if (state === 'succeeded')
    return `${revision} was ${kind === 'rollback' ? 'rolled back to' : 'deployed to'} ${environment}`;
  if (state === 'failed' && failure?.code === 'aborted') return `${revision} was aborted`;
  if (state === 'failed') return tookRequests(timeline) ? `${revision} was undone` : `${revision} was not deployed`;
  if (state === 'canceled') return `${revision} was canceled`;
  return state === 'canary'
    ? `${revision} is a canary of ${environment}`
    : `${revision} is on its way to ${environment}`;
}

function Outcome({ deployment }: { deployment: Deployment }) {
  const { finished_at, previous_revision, created_at } = deployment;
  if (finished_at === null) return null;
  const tookS = (Date.parse(finished_at) - Date.parse(created_at)) / 1000;
  return (
    <span className="dim">
      <Ago at={finished_at} />
      {isUndone(deployment) && previous_revision && ` · ${previous_revision} serves everybody`}
      {!isUndone(deployment) && ` · took ${duration(tookS)}`}
    </span>
  );
}

/** See what it is, or deploy what comes after it. */
function Next({ deployment }: { deployment: Deployment }) {
  const { project_id, environment, image } = deployment;
  const can = useCan();
  const found = useEnvironment(project_id, environment);
  if (!found.data) return null;
  const { in_progress_deployment, locked, active_revision, url } = found.data;
  return (
    <>
      {active_revision === deployment.revision && (
        <a className="quiet" href={url} target="_blank" rel="noreferrer">
          Open ↗
        </a>
      )}
      {can('deployments:write') && (
        <DialogButton
          title={`Deploy to ${environment}`}
          label={isUndone(deployment) ? 'Deploy again…' : 'Deploy…'}
          {...(in_progress_deployment !== null && { disabled: 'Another deployment is in progress.' })}
          {...(locked !== null && { disabled: `Locked: ${locked.reason}` })}
        >
          {() => <DeployForm project={project_id} environments={[found.data!]} image={image} />}
        </DialogButton>
      )}
    </>
  );
}

function Body({ deployment }: { deployment: Deployment }) {
  const can = useCan();
  const { failure, timeline, project_id: project, environment: name, revision, previous_revision, state } = deployment;
  const environment = useEnvironment(project, name);
  const moments = timeline.map(({ at, state: each, message }, index) => ({
    key: `${index}`,
    at,
    state: each,
    text: sentence(shortDigest(message)),
  }));
  const isUnderWay = ['canary', 'promoting', 'starting'].includes(state);
  // What stands below it would jump when it comes.
  if (isUnderWay && isLoading(environment)) return <div className="skeleton-block" />;
  return (
    <>
      {failure && (
        <section className="incident down" aria-label="Failure">
          <p>
            <strong>{sentence(failure.message)}</strong> <Exposure deployment={deployment} />{' '}
            {previous_revision ? `${previous_revision} serves all requests.` : 'Nothing was live before it.'}{' '}
            {reached(timeline, 'starting') && (
              <Link to={`/projects/${project}/environments/${name}/logs?revision=${revision}`}>Its log lines</Link>
            )}
          </p>
          {failure.log_tail.length > 0 && !wasUndone(failure.code) && (
            <Scrolled label="Last log lines of the failed instance">{failure.log_tail.join('\n')}</Scrolled>
          )}
        </section>
      )}
      {deployment.finished_at === null && state !== 'canary' && <Stepper deployment={deployment} />}
      {isUnderWay ? (
        environment.data && (
          <CanaryCard project={project} id={deployment.id} environment={environment.data} summary={null} />
        )
      ) : (
        <Facts deployment={deployment} />
      )}
      {can('alerts:read') && tookRequests(timeline) && (
        <OwnMetrics deployment={deployment} url={environment.data?.url} />
      )}
      <div className="halves">
        <section className="panel" aria-labelledby="timeline">
          <h2 id="timeline">Timeline</h2>
          <Timeline moments={moments} isClock />
        </section>
        <section className="panel" aria-labelledby="changed">
          <h2 id="changed">{previous_revision ? `Changed from ${previous_revision}` : 'The first revision'}</h2>
          <Comparison project={project} name={name} to={revision} isFirst={!previous_revision} />
        </section>
      </div>
      {reached(timeline, 'starting') && <Logs project={project} deployment={deployment.id} />}
    </>
  );
}

/** The whole of it is in the details of the revision. */
const shortDigest = (text: string): string => text.replace(/(sha256:[0-9a-f]{12})[0-9a-f]{52}\.?/g, '$1…');

/** For how long visitors met what went wrong. */
function Exposure({ deployment: { revision, timeline } }: { deployment: Deployment }) {
  const began = reached(timeline, 'canary', 'promoting');
  const ended = reached(timeline, 'aborting', 'failed', 'canceled');
  if (!began || !ended) return null;
  const seconds = Math.max(1, (Date.parse(ended.at) - Date.parse(began.at)) / 1000);
  return <>{`${revision} had requests for ${duration(seconds)}.`}</>;
}

function Facts({ deployment }: { deployment: Deployment }) {
  const { image, note, strategy, canary_percent, kind, created_at } = deployment;
  return (
    <dl className="facts across panel">
      <div>
        <dt>Image</dt>
        <dd>
          <code>{image}</code>
        </dd>
      </div>
      <div>
        <dt>Strategy</dt>
        <dd>
          {kind === 'rollback' ? 'rollback' : strategy.replace('_', '-')}
          {canary_percent !== null && `, ${canary_percent} % at first`}
        </dd>
      </div>
      <div>
        <dt>Created</dt>
        <dd>
          <Ago at={created_at} />
        </dd>
      </div>
      {note && (
        <div>
          <dt>Note</dt>
          <dd>{note}</dd>
        </div>
      )}
    </dl>
  );
}

const refreshMs = 5000;
const marginMs = 120_000;
const keptMs = 7 * 86_400_000;

/** The measurements of its own time, also long after it has ended. */
function OwnMetrics({ deployment, url }: { deployment: Deployment; url: string | undefined }) {
  const {
    id,
    project_id: project,
    environment,
    revision,
    previous_revision,
    timeline,
    created_at,
    finished_at,
  } = deployment;
  const metrics = useRead<Metrics>(
    `metrics/${id}`,
    async (client) => {
      const endMs = finished_at === null ? Number.POSITIVE_INFINITY : Date.parse(finished_at) + marginMs;
      const from = new Date(Date.parse(created_at) - marginMs).toISOString();
      const to = new Date(Math.min(Date.now(), endMs)).toISOString();
      const all = await client.metrics.get(project, { environment, from, to });
      return { ...all, series: all.series.filter((each) => [revision, previous_revision].includes(each.revision)) };
    },
    { pollMs: () => (finished_at === null ? refreshMs : null) },
  );
  const toneOf = useMemo(
    () =>
      (each: string): Tone =>
        each === revision ? 'canary' : 'stable',
    [revision],
  );
  const began = reached(timeline, 'canary', 'promoting');
  const marks: Mark[] = began ? [{ at: Date.parse(began.at) / 1000, text: `${revision} gets requests` }] : [];
  const isForgotten = finished_at !== null && Date.now() - Date.parse(finished_at) > keptMs;
  return (
    <section aria-label="Metrics of this deployment">
      <Shown of={metrics} skeleton={<ChartsSkeleton />}>
        {(data) =>
          data.series.length === 0 ? (
            <Empty
              title={isForgotten ? 'Its measurements are no longer kept.' : 'No requests were measured.'}
              command={!isForgotten && url ? `curl -i ${url}` : undefined}
            >
              {isForgotten
                ? 'Measurements are kept for seven days.'
                : 'Charts appear once the address of the environment receives requests.'}
            </Empty>
          ) : (
            <TrafficChartRow
              metrics={data}
              toneOf={toneOf}
              marks={marks}
              group={id}
              endedAt={finished_at === null ? null : Date.parse(finished_at) / 1000}
            />
          )
        }
      </Shown>
    </section>
  );
}
