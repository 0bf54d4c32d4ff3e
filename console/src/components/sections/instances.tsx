// What runs in an environment, and what ended there by itself.
import type { Instance } from '../../../../src/client/index.ts';
import { useList } from '../../use-read.ts';
import { Badge } from '../display/badge.tsx';
import { ShortIds } from '../display/id.tsx';
import { Ago } from '../display/time.tsx';
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
  if (!check) return <>–</>;
  return (
    <>
      {check.ok ? 'Passed' : 'Failed'} <Ago at={check.at} />: {check.message}
    </>
  );
}

interface InstancesProps {
  project: string;
  environment: string;
  /** Without restarts and checks, for the overview. */
  isBrief?: boolean;
}

export function Instances({ project, environment, isBrief = false }: InstancesProps) {
  const instances = useList<Instance>(
    `instances/${project}/${environment}`,
    (client, page) => client.instances.list(project, environment, page).page(),
    { project, environment, pollMs: () => pollMs },
  );
  return (
    <section aria-labelledby="instances">
      <h2 id="instances">Instances</h2>
      <Shown of={instances}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="Nothing runs here.">A deployment starts instances.</Empty>
          ) : (
            <Table
              label="Instances"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Instance', cell: ({ id }) => <ShortIds text={id} /> },
                { name: 'Revision', cell: ({ revision }) => revision },
                { name: 'State', cell: (item) => <State {...item} /> },
                ...(isBrief
                  ? [{ name: 'Node', cell: ({ node }: Instance) => node ?? '–' }]
                  : [
                      { name: 'Restarts', cell: ({ restarts }: Instance) => restarts },
                      {
                        name: 'Started',
                        cell: ({ started_at }: Instance) => (started_at ? <Ago at={started_at} /> : '–'),
                      },
                      { name: 'Node', cell: ({ node }: Instance) => node ?? '–' },
                      { name: 'Last check', cell: (item: Instance) => <LastCheck {...item} /> },
                    ]),
              ]}
            />
          )
        }
      </Shown>
      <More of={instances} />
    </section>
  );
}
