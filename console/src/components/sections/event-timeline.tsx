import type { EventKind, SluiceEvent } from '../../../../src/client/index.ts';
import { useCan } from '../../session.ts';
import { useList, useRead } from '../../use-read.ts';
import { type Moment, Timeline } from '../display/timeline.tsx';
import { Link } from '../layout/link.tsx';
import { Empty, More, Shown } from '../layout/states.tsx';

function momentOf(event: SluiceEvent): Moment {
  const base = { key: event.id, at: event.created_at };
  const deployment = (id: string, text: string) => (
    <Link to={`/projects/${event.project_id}/deployments/${id}`}>{text}</Link>
  );
  switch (event.type) {
    case 'deployment.created':
    case 'deployment.succeeded':
    case 'deployment.failed': {
      const { id, revision, image, environment, kind, failure } = event.data;
      const what = `${kind === 'rollback' ? 'Rollback' : 'Deployment'} of ${image} as ${revision} to ${environment}`;
      const [state, how] = {
        'deployment.created': ['created', 'created'],
        'deployment.succeeded': ['succeeded', 'succeeded'],
        'deployment.failed': ['failed', failure ? `failed: ${failure.message}` : 'canceled'],
      }[event.type] as [string, string];
      return {
        ...base,
        state,
        text: (
          <>
            {deployment(id, what)} {how}
          </>
        ),
      };
    }
    case 'revision.rolled_back': {
      const { id, environment, cause, deployment_id } = event.data;
      return {
        ...base,
        state: 'rolled_back',
        text: deployment(deployment_id, `${id} in ${environment} rolled back: ${cause}`),
      };
    }
    case 'alert.fired':
      return {
        ...base,
        state: 'firing',
        text: `${event.data.name} in ${event.data.environment}: ${event.data.message}`,
      };
    case 'alert.resolved':
      return { ...base, state: 'resolved', text: `${event.data.name} in ${event.data.environment}` };
    case 'domain.certificate_renewed':
      return { ...base, state: 'active', text: `Certificate of ${event.data.hostname} renewed` };
    default:
      return { ...base, state: 'calm', text: (event as { type: string }).type };
  }
}

interface EventTimelineProps {
  /** Without it: of all projects. */
  project?: string;
  type?: EventKind | '';
}

/** With its project before it. */
function named(event: SluiceEvent, name = event.project_id): Moment {
  const moment = momentOf(event);
  const text = (
    <>
      <Link to={`/projects/${event.project_id}`}>{name}</Link> · {moment.text}
    </>
  );
  return { ...moment, text };
}

/** Of the newest projects; of others the id is shown. */
function useProjectNames(isWanted: boolean): Map<string, string> {
  const can = useCan();
  const { data = [] } = useRead(
    'project-names',
    async (client) =>
      isWanted && can('projects:read') ? (await client.projects.list({ limit: 100 }).page()).data : [],
    { project: '*' },
  );
  return new Map(data.map(({ id, name }) => [id, name]));
}

export function EventTimeline({ project, type = '' }: EventTimelineProps) {
  const events = useList<SluiceEvent>(
    `events/${project ?? ''}/${type}`,
    (client, page) =>
      client.events.list({ ...page, ...(project && { project_id: project }), ...(type && { type }) }).page(),
    { project: project ?? '*' },
  );
  const names = useProjectNames(project === undefined);
  return (
    <>
      <Shown of={events}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No activity yet." command="npx sluice events --follow">
              Deployments, alerts and certificates appear here, as webhooks receive them.
            </Empty>
          ) : (
            <Timeline
              moments={items.map((event) =>
                project === undefined ? named(event, names.get(event.project_id)) : momentOf(event),
              )}
            />
          )
        }
      </Shown>
      <More of={events} />
    </>
  );
}
