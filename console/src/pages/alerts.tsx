import { useState } from 'react';
import type { AccountAlert } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { Alerts } from '../components/sections/alert-rules.tsx';
import type { Params } from '../router.ts';
import { useList, useSteady } from '../use-read.ts';
import { oldestFirst, useEnvironments, useProject } from './project.tsx';

export function AlertsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const environments = useEnvironments(id);
  return (
    <>
      <PageHead
        title="Alerts"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
      />
      <ProjectTabs id={id} />
      <Alerts project={id} environments={oldestFirst(environments.data ?? []).map(({ name }) => name)} />
    </>
  );
}

/** Those that fire now, of all projects; those that are over on request. */
export function AllAlertsPage() {
  const [state, setState] = useState<'firing' | 'resolved' | ''>('firing');
  const typed = useTyped();
  const { search } = typed;
  const alerts = useSteady(
    useList<AccountAlert>(
      `alerts/all/${state}/${search}`,
      (client, page) => client.overview.alerts({ ...page, ...(state && { state }), ...(search && { search }) }).page(),
      { project: '*' },
    ),
  );
  return (
    <>
      <PageHead
        title="Alerts"
        actions={
          <>
            <SearchBox
              typed={typed}
              label="Search alerts by name, message or project"
              isEmpty={state === '' && alerts.data?.length === 0}
            />
            <select
              aria-label="Filter by state"
              value={state}
              onChange={(event) => setState(event.currentTarget.value as typeof state)}
            >
              <option value="firing">Firing</option>
              <option value="resolved">Resolved</option>
              <option value="">All</option>
            </select>
          </>
        }
      />
      <Shown of={alerts}>
        {(items) =>
          items.length === 0 ? (
            <Empty title={state === 'firing' && search === '' ? 'Nothing is firing.' : 'No alerts found.'}>
              Every new environment has rules for errors and for healthy instances; the Alerts of a project add others.
            </Empty>
          ) : (
            <Table
              label="Alerts"
              isFlowing
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'State', cell: (item) => <Badge state={item.state} /> },
                {
                  name: 'Alert',
                  cell: ({ name, severity }) => (
                    <>
                      <strong>{name}</strong> {severity !== 'info' && <Badge state={severity} />}
                    </>
                  ),
                },
                {
                  name: 'Where',
                  cell: ({ project_id, project_name, environment, revision, hostname }) => (
                    <>
                      <Link to={`/projects/${project_id}/environments/${environment}/alerts`}>
                        {project_name} / {environment}
                      </Link>{' '}
                      <span className="dim">{[revision, hostname].filter(Boolean).join(' · ')}</span>
                    </>
                  ),
                },
                { name: 'Message', cell: ({ message }) => message },
                { name: 'Fired', cell: ({ fired_at }) => <Ago at={fired_at} /> },
                { name: 'Resolved', cell: ({ resolved_at }) => resolved_at && <Ago at={resolved_at} /> },
              ]}
            />
          )
        }
      </Shown>
      <More of={alerts} />
    </>
  );
}
