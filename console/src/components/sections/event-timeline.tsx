import type { SluiceEvent } from '../../../../src/client/index.ts';
import { useList } from '../../use-read.ts';
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

export function EventTimeline({ project, about }: { project: string; about?(event: SluiceEvent): boolean }) {
  const events = useList<SluiceEvent>(
    `events/${project}`,
    (client, page) => client.events.list({ ...page, project_id: project }).page(),
    { project },
  );
  return (
    <>
      <Shown of={events}>
        {(all) => {
          const items = about ? all.filter(about) : all;
          return items.length === 0 ? (
            <Empty title="No activity yet.">Deployments, alerts and certificates appear here.</Empty>
          ) : (
            <Timeline moments={items.map(momentOf)} />
          );
        }}
      </Shown>
      <More of={events} />
    </>
  );
}
