// Deployments, newest first: of an environment, of a project, or of all.
import type { DeploymentSummary } from '../../../../src/client/index.ts';
import { capitalised, nameAndTag, tagOf } from '../../format.ts';
import { useList } from '../../use-read.ts';
import { Badge, labelOf } from '../display/badge.tsx';
import { endOf, reasonOf } from '../display/health.tsx';
import { Ago, duration as lasting } from '../display/time.tsx';
import { CanaryControls } from '../forms/canary-controls.tsx';
import { Link } from '../layout/link.tsx';
import { Empty, More, NothingFound, Shown } from '../layout/states.tsx';
import { Table } from '../layout/table.tsx';

interface Where {
  project?: string;
  environment?: string;
  state?: DeploymentSummary['state'] | '';
  search?: string;
}

export const useDeployments = ({ project, environment, state, search }: Where) =>
  useList<DeploymentSummary>(
    `deployments/${project ?? ''}/${environment ?? ''}/${state ?? ''}/${search ?? ''}`,
    (client, page) =>
      client.overview
        .deployments({
          ...page,
          ...(project && { project_id: project }),
          ...(environment && { environment }),
          ...(state && { state }),
          ...(search && { search }),
        })
        .page(),
    { project: project ?? '*', ...(environment && { environment }) },
  );

const State = ({ item }: { item: DeploymentSummary }) => (
  <Badge state={item.state}>{item.state === 'failed' && item.failure ? endOf(item) : labelOf(item.state)}</Badge>
);

/** What came of it, in words. */
function Outcome({ item }: { item: DeploymentSummary }) {
  const { state, canary, failure, kind, created_at, finished_at, note } = item;
  const tookS = finished_at === null ? 0 : (Date.parse(finished_at) - Date.parse(created_at)) / 1000;
  const text =
    state === 'canary'
      ? `${canary?.percent ?? 0} %, step ${canary?.step ?? 1}${canary?.phase === 'baking' ? '' : canary?.phase === 'paused' ? ', paused' : ', waits for promotion'}`
      : state === 'succeeded'
        ? `${kind === 'rollback' ? 'rolled back' : item.strategy === 'canary' ? 'promoted' : 'deployed'} in ${lasting(tookS)}`
        : failure
          ? capitalised(reasonOf(failure))
          : '';
  return (
    <span className="outcome">
      {text}
      {note && <span className="dim"> “{note}”</span>}
    </span>
  );
}

interface TableProps {
  of: ReturnType<typeof useDeployments>;
  where: Where;
  isBrief?: boolean;
}

export function DeploymentTable({ of, where, isBrief = false }: TableProps) {
  const isOfAll = where.project === undefined && where.environment === undefined;
  return (
    <>
      <Shown of={of}>
        {(items) =>
          items.length === 0 ? (
            where.search || where.state ? (
              <NothingFound of={of} />
            ) : (
              <Empty
                title="No deployments."
                command={`npx sluice deploy registry.example/shop:1.4 --project ${where.project ?? 'shop'}`}
              >
                <p>
                  A deployment rolls an image out as a new revision: at once, or as a canary that proves itself first.
                </p>
                {isOfAll && (
                  <p>
                    Start one on the page of a project: <Link to="/projects">Projects</Link>.
                  </p>
                )}
              </Empty>
            )
          ) : (
            <Table
              label="Deployments"
              isFlowing
              items={items}
              keyOf={({ id }) => id}
              columns={[
                ...(where.environment === undefined
                  ? [
                      {
                        name: isOfAll ? 'Project and environment' : 'Environment',
                        cell: (item: DeploymentSummary) => (
                          <span className="name">
                            {isOfAll && (
                              <>
                                <Link to={`/projects/${item.project_id}`}>{item.project_name}</Link>
                                <span className="dim"> / </span>
                              </>
                            )}
                            <Link to={`/projects/${item.project_id}/environments/${item.environment}`}>
                              {item.environment}
                            </Link>
                          </span>
                        ),
                      },
                    ]
                  : []),
                {
                  name: 'Revision',
                  cell: ({ id, project_id, revision }) => (
                    <Link to={`/projects/${project_id}/deployments/${id}`} className="mono">
                      {revision}
                    </Link>
                  ),
                },
                { name: 'State', cell: (item) => <State item={item} /> },
                {
                  name: 'Image',
                  cell: ({ image }) => (
                    <span className="mono image" title={image}>
                      {isBrief ? tagOf(image) : nameAndTag(image)}
                    </span>
                  ),
                },
                { name: 'Outcome', cell: (item) => <Outcome item={item} /> },
                { name: 'By', cell: ({ created_by_name }) => <span className="dim by">{created_by_name ?? '–'}</span> },
                { name: 'When', cell: ({ created_at }) => <Ago at={created_at} isShort={isBrief} /> },
                ...(isBrief
                  ? []
                  : [
                      {
                        name: 'Commands',
                        quiet: true,
                        cell: (item: DeploymentSummary) =>
                          item.finished_at === null ? (
                            <span className="row tight one-line">
                              <CanaryControls deployment={item} isBrief />
                            </span>
                          ) : null,
                      },
                    ]),
              ]}
            />
          )
        }
      </Shown>
      <More of={of} />
    </>
  );
}
