// What runs in an environment, and what ended there by itself.
import type { Environment, Instance } from '../../../../src/client/index.ts';
import { bytes, cpus, plural } from '../../format.ts';
import { useList } from '../../use-read.ts';
import { type Range, useUsage } from '../charts/traffic-charts.tsx';
import { Badge } from '../display/badge.tsx';
import { ShortIds } from '../display/id.tsx';
import { Ago } from '../display/time.tsx';
import { Link } from '../layout/link.tsx';
import { Empty, More, Shown } from '../layout/states.tsx';
import { Table } from '../layout/table.tsx';

/** Health checks are made all the time; that one passed again is announced to nobody. */
const pollMs = 10_000;

const reasons: Record<NonNullable<Instance['ended']>['reason'], string> = {
  exited: 'exited',
  out_of_memory: 'out of memory',
  killed: 'killed',
  not_found: 'gone from its engine',
  evicted: 'evicted',
};

function State({ state, ended }: Instance) {
  if (!ended) return <Badge state={state} />;
  const code = ended.exit_code === null ? '' : `, exit code ${ended.exit_code}`;
  return (
    <>
      <Badge state="ended">{`${reasons[ended.reason]}${code}`}</Badge> <Ago at={ended.at} />
    </>
  );
}

function LastCheck({ last_check: check }: Instance) {
  if (!check) return null;
  return (
    <>
      {check.ok ? 'Passed' : 'Failed'} <Ago at={check.at} />: {check.message}
    </>
  );
}

const useInstances = (project: string, environment: string) =>
  useList<Instance>(
    `instances/${project}/${environment}`,
    (client, page) => client.instances.list(project, environment, page).page(),
    { project, environment, pollMs: () => pollMs },
  );

interface RunningProps {
  project: string;
  environment: Environment;
  range: Range;
}

/** What runs now and what it uses; without those that ended. */
export function RunningInstances({ project, environment, range }: RunningProps) {
  const instances = useInstances(project, environment.name);
  const usage = useUsage(project, environment, range).data?.series ?? [];
  const used = (id: string, field: 'memory_bytes' | 'cpus', format: (value: number) => string) => {
    const value = usage.find(({ instance }) => instance === id)?.points.findLast((point) => point[field] !== null);
    return value && <span className="by">{format(value[field]!)}</span>;
  };
  const ended = instances.data?.filter((each) => each.ended).length ?? 0;
  const nodes = new Set(instances.data?.map(({ node }) => node));
  return (
    <section aria-labelledby="instances">
      <h2 id="instances">Instances</h2>
      <Shown of={instances}>
        {(items) => (
          <Table
            label="Instances"
            items={items.filter((each) => !each.ended)}
            keyOf={({ id }) => id}
            columns={[
              { name: 'Revision', cell: ({ revision, id }) => <span title={id}>{revision}</span> },
              { name: 'State', cell: (item) => <State {...item} /> },
              { name: 'Memory', cell: ({ id }) => used(id, 'memory_bytes', bytes) },
              { name: 'CPU', cell: ({ id }) => used(id, 'cpus', cpus) },
              ...(nodes.size > 1
                ? [{ name: 'Node', cell: ({ node }: Instance) => node && <span className="dim by">{node}</span> }]
                : []),
            ]}
          />
        )}
      </Shown>
      {ended > 0 && (
        <p className="small">
          <Link to={`/projects/${project}/environments/${environment.name}/instances`}>
            {plural(ended, 'instance')}
          </Link>{' '}
          ended.
        </p>
      )}
    </section>
  );
}

export function Instances({ project, environment }: { project: string; environment: string }) {
  const instances = useInstances(project, environment);
  return (
    <section aria-labelledby="instances">
      <h2 id="instances" className="unseen">
        Instances
      </h2>
      <Shown of={instances}>
        {(items) =>
          items.length === 0 ? (
            <Empty
              title="Nothing runs here."
              command={`npx sluice deploy registry.example/shop:1.4 --project ${project} --env ${environment}`}
            >
              A deployment starts instances.
            </Empty>
          ) : (
            <Table
              label="Instances"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Instance', cell: ({ id }) => <ShortIds text={id} /> },
                { name: 'Revision', cell: ({ revision }) => revision },
                { name: 'State', cell: (item) => <State {...item} /> },
                { name: 'Restarts', cell: ({ restarts }) => restarts },
                { name: 'Started', cell: ({ started_at }) => started_at && <Ago at={started_at} /> },
                { name: 'Node', cell: ({ node }) => node },
                { name: 'Last check', cell: (item) => <LastCheck {...item} /> },
              ]}
            />
          )
        }
      </Shown>
      <More of={instances} />
    </section>
  );
}
