// The revisions of an environment: go back to one, or see what two of them differ in.
import { useState } from 'react';
import type { Environment, Revision, RevisionChanges } from '../../../../src/client/index.ts';
import { navigate } from '../../router.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { useList, useRead } from '../../use-read.ts';
import { Badge } from '../display/badge.tsx';
import { Ago } from '../display/time.tsx';
import { ConfirmButton } from '../forms/actions.tsx';
import { Link } from '../layout/link.tsx';
import { Empty, More, Shown } from '../layout/states.tsx';
import { Table } from '../layout/table.tsx';

export function Revisions({ project, environment }: { project: string; environment: Environment }) {
  const { name } = environment;
  const { client } = useSignedIn();
  const can = useCan();
  const revisions = useList<Revision>(
    `revisions/${project}/${name}`,
    (each, page) => each.revisions.list(project, name, page).page(),
    { project, environment: name },
  );
  const rollback = async (revision: string) => {
    const { id } = await client.environments.rollback(project, name, { revision });
    navigate(`/projects/${project}/deployments/${id}`);
  };
  const mayRollBack = can('deployments:write') && environment.in_progress_deployment === null;
  return (
    <Shown of={revisions}>
      {(items) =>
        items.length === 0 ? (
          <Empty
            title="No revisions yet."
            command={`npx sluice deploy registry.example/shop:1.4 --project ${project} --env ${name}`}
          >
            The first deployment creates r1.
          </Empty>
        ) : (
          <>
            <Table
              label="Revisions"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Revision',
                  cell: ({ id, deployment_id }) => (
                    <Link to={`/projects/${project}/deployments/${deployment_id}`} className="mono">
                      {id}
                    </Link>
                  ),
                },
                { name: 'State', cell: ({ state }) => <Badge state={state} /> },
                { name: 'Traffic', cell: ({ traffic_percent }) => `${traffic_percent} %` },
                { name: 'Image', cell: ({ image }) => <code>{image}</code> },
                { name: 'Created', cell: ({ created_at }) => <Ago at={created_at} /> },
                {
                  name: 'Roll back',
                  quiet: true,
                  cell: ({ id, rollback_eligible, image }) =>
                    rollback_eligible && mayRollBack ? (
                      <ConfirmButton
                        title={`Roll back to ${id}?`}
                        about={
                          <>
                            <p>
                              A new revision gets the image <code>{image}</code>, the variables and the settings of {id}
                              , and all requests as soon as it is healthy.
                            </p>
                            {environment.active_revision && (
                              <Comparison project={project} name={name} from={environment.active_revision} to={id} />
                            )}
                          </>
                        }
                        verb={`Roll back to ${id}`}
                        run={() => rollback(id)}
                        done={`Rolling back to ${id}.`}
                      >
                        Roll back to {id}
                      </ConfirmButton>
                    ) : null,
                },
              ]}
            />
            <More of={revisions} />
            {items.length > 1 && <Compare project={project} name={name} ids={items.map(({ id }) => id)} />}
          </>
        )
      }
    </Shown>
  );
}

function Compare({ project, name, ids }: { project: string; name: string; ids: string[] }) {
  const [from, setFrom] = useState(ids[1]!);
  const [to, setTo] = useState(ids[0]!);
  const choice = (label: string, value: string, set: (id: string) => void) => (
    <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
      {ids.map((id) => (
        <option key={id} value={id}>
          {id}
        </option>
      ))}
    </select>
  );
  return (
    <section className="panel" aria-labelledby="compare">
      <div className="title-row">
        <h2 id="compare">Compare</h2>
        <div className="row">
          {choice('From', from, setFrom)} → {choice('To', to, setTo)}
        </div>
      </div>
      <Comparison project={project} name={name} from={from} to={to} />
    </section>
  );
}

interface ComparisonProps {
  project: string;
  name: string;
  /** Without it: the revision that was live when `to` was deployed. */
  from?: string;
  to: string;
  /** There was none before it: everything of it is new. */
  isFirst?: boolean;
}

const variablePrefix = 'variables.';
const isVariable = (field: string): boolean => field.startsWith(variablePrefix);
const signs = { added: '+', removed: '−', changed: '~' } as const;

/** Values of variables are never shown. */
export function Comparison({ project, name, from, to, isFirst = false }: ComparisonProps) {
  const changes = useRead<RevisionChanges>(
    `compare/${project}/${name}/${from ?? ''}/${to}`,
    (client) => client.revisions.compare(project, name, to, from === undefined ? {} : { from }),
    { project, environment: name },
  );
  return (
    <Shown of={changes} skeleton={<p className="small">Comparing…</p>}>
      {(data) =>
        data.changes.length === 0 ? (
          <p className="small">They have the same image, settings and variables.</p>
        ) : (
          <dl className="changes">
            {data.changes
              .filter(({ field }) => !isVariable(field))
              .map(({ field, from: before, to: after }) => (
                <div key={field}>
                  <dt>{field}</dt>
                  <dd>
                    <code>
                      {!isFirst && `${before ?? 'none'} → `}
                      {after ?? 'none'}
                    </code>
                  </dd>
                </div>
              ))}
            {data.changes.some(({ field }) => isVariable(field)) && (
              <div>
                <dt>variables</dt>
                {data.changes
                  .filter(({ field }) => isVariable(field))
                  .map(({ field, change }) => (
                    <dd key={field} className={change}>
                      <code>
                        {signs[change]} {field.slice(variablePrefix.length)}
                      </code>
                    </dd>
                  ))}
              </div>
            )}
          </dl>
        )
      }
    </Shown>
  );
}
