import { useState } from 'react';
import type { Deployment, DeploymentState } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import type { Params } from '../router.ts';
import { useList } from '../use-read.ts';
import { useProject } from './project.tsx';

const filters = [
  ['', 'All states'],
  ['canary', 'Canary'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['canceled', 'Canceled'],
] as const satisfies [DeploymentState | '', string][];

export function DeploymentsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const [state, setState] = useState<DeploymentState | ''>('');
  const deployments = useList<Deployment>(
    `deployments/${id}/${state}`,
    (client, page) => client.deployments.list(id, { ...page, ...(state && { state }) }).page(),
    { project: id },
  );
  return (
    <>
      <PageHead
        title="Deployments"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
        actions={
          <select
            aria-label="Filter by state"
            value={state}
            onChange={(event) => setState(event.currentTarget.value as DeploymentState | '')}
          >
            {filters.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        }
      />
      <ProjectTabs id={id} />
      <Shown of={deployments}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No deployments.">
              Deploy an image from the <Link to={`/projects/${id}`}>overview</Link>.
            </Empty>
          ) : (
            <DeploymentTable project={id} items={items} />
          )
        }
      </Shown>
      <More of={deployments} />
    </>
  );
}

function DeploymentTable({ project, items }: { project: string; items: Deployment[] }) {
  return (
    <Table
      label="Deployments"
      items={items}
      keyOf={({ id }) => id}
      columns={[
        {
          name: 'Revision',
          cell: ({ id, revision }) => <Link to={`/projects/${project}/deployments/${id}`}>{revision}</Link>,
        },
        { name: 'Environment', cell: ({ environment }) => environment },
        { name: 'Image', cell: ({ image }) => <code>{image}</code> },
        {
          name: 'Strategy',
          cell: ({ kind, strategy }) => (kind === 'rollback' ? 'rollback' : strategy.replace('_', '-')),
        },
        { name: 'State', cell: ({ state }) => <Badge state={state} /> },
        { name: 'Created', cell: ({ created_at }) => <Ago at={created_at} /> },
      ]}
    />
  );
}
