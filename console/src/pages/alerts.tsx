import type { Alert, AlertRule } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { NewRule } from '../components/forms/rule-forms.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { isPlotted, RuleCard } from '../components/sections/alert-rules.tsx';
import type { Params } from '../router.ts';
import { useCan } from '../session.ts';
import { useList } from '../use-read.ts';
import { oldestFirst, useEnvironments, useProject } from './project.tsx';

export function AlertsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const can = useCan();
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
      <Alerts project={id} />
      <Rules project={id} mayChange={can('alerts:write')} />
    </>
  );
}

function Alerts({ project }: { project: string }) {
  const alerts = useList<Alert>(`alerts/${project}`, (client, page) => client.alerts.list(project, page).page(), {
    project,
  });
  return (
    <section aria-labelledby="alerts">
      <h2 id="alerts">Alerts</h2>
      <Shown of={alerts}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No alerts.">An alert appears here when the condition of a rule is met.</Empty>
          ) : (
            <Table
              label="Alerts"
              items={[...items].sort((a, b) => Number(b.state === 'firing') - Number(a.state === 'firing'))}
              keyOf={({ id }) => id}
              columns={[
                { name: 'State', cell: ({ state }) => <Badge state={state} /> },
                {
                  name: 'Alert',
                  cell: ({ name, severity }) => (
                    <>
                      {name} {severity !== 'info' && <Badge state={severity} />}
                    </>
                  ),
                },
                {
                  name: 'Source',
                  cell: ({ environment, revision, hostname }) =>
                    [environment, revision, hostname].filter(Boolean).join(' · '),
                },
                { name: 'Message', cell: ({ message }) => message },
                { name: 'Fired', cell: ({ fired_at }) => <Ago at={fired_at} /> },
                { name: 'Resolved', cell: ({ resolved_at }) => (resolved_at ? <Ago at={resolved_at} /> : '–') },
              ]}
            />
          )
        }
      </Shown>
      <More of={alerts} />
    </section>
  );
}

/** By environment, and within it those with a chart first. */
const grouped = (rules: AlertRule[]): AlertRule[] =>
  [...rules].sort(
    (a, b) => a.environment.localeCompare(b.environment) || Number(isPlotted(b.metric)) - Number(isPlotted(a.metric)),
  );

function Rules({ project, mayChange }: { project: string; mayChange: boolean }) {
  const environments = useEnvironments(project);
  const rules = useList<AlertRule>(`rules/${project}`, (client, page) => client.alertRules.list(project, page).page(), {
    project,
  });
  return (
    <section aria-labelledby="rules">
      <h2 id="rules">Alert rules</h2>
      <Shown of={rules}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No alert rules.">A rule says when an alert fires. Create one below.</Empty>
          ) : (
            <ul className="cards wide">
              {grouped(items).map((rule) => (
                <RuleCard key={rule.id} project={project} rule={rule} mayChange={mayChange} />
              ))}
            </ul>
          )
        }
      </Shown>
      <More of={rules} />
      {mayChange && environments.data && (
        <NewRule project={project} environments={oldestFirst(environments.data).map(({ name }) => name)} />
      )}
    </section>
  );
}
