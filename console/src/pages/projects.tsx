// All projects at a glance: what each runs, how it fares, and what changed last.
import { Fragment, useEffect, useRef, useState } from 'react';
import type { EnvironmentOverview, Overview, ProjectOverview } from '../../../src/client/index.ts';
import { Sparkline } from '../components/charts/sparkline.tsx';
import { sharesOf } from '../components/charts/traffic-split.tsx';
import { ShareBar } from '../components/display/canary-progress.tsx';
import { Copyable } from '../components/display/copy.tsx';
import { Dot, endOf, reasonOf, stateOf } from '../components/display/health.tsx';
import { Ago } from '../components/display/time.tsx';
import { CanaryControls } from '../components/forms/canary-controls.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { Link } from '../components/layout/link.tsx';
import { notify } from '../components/layout/notices.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { useOverview } from '../components/layout/shell.tsx';
import { Empty, Shown, SkeletonRows } from '../components/layout/states.tsx';
import { count, percent, perSecond, plural, tagOf } from '../format.ts';
import { navigate, replaceQuery, usePath } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useList, useSteady } from '../use-read.ts';

type Sort = 'newest' | 'name' | 'health' | 'deployed';
type Health = 'down' | 'degraded' | 'healthy' | 'idle';

interface Filter {
  search: string;
  health: Health | '';
  sort: Sort;
}

function filterNow(): Filter {
  const query = new URLSearchParams(location.search);
  return {
    search: query.get('search') ?? '',
    health: (query.get('health') ?? '') as Health | '',
    sort: (query.get('sort') ?? 'health') as Sort,
  };
}

const typingMs = 120;
const pageSize = 50;
/** Measurements are not announced. */
const refreshMs = 10_000;

export function ProjectsPage() {
  const can = useCan();
  const isNew = usePath() === '/projects/new';
  const [filter, setFilter] = useState(filterNow);
  const [search, setSearch] = useState(filter.search);
  useEffect(() => {
    const timer = setTimeout(() => setSearch(filter.search.trim()), typingMs);
    return () => clearTimeout(timer);
  }, [filter.search]);
  const change = (changed: Partial<Filter>) => {
    const next = { ...filter, ...changed };
    setFilter(next);
    replaceQuery({ search: next.search, health: next.health, sort: next.sort === 'health' ? '' : next.sort });
  };
  const overview = useOverview();
  const { health, sort } = filter;
  const projects = useSteady(
    useList<ProjectOverview>(
      `overview/${search}/${health}/${sort}`,
      (client, page) =>
        client.overview.projects({ ...page, sort, ...(search && { search }), ...(health && { health }) }).page(),
      { project: '*', pageSize, pollMs: () => refreshMs },
    ),
  );
  const total = overview.data?.projects;
  const isFiltered = search !== '' || health !== '';
  const isFirstRun = total === 0 && !isFiltered;
  return (
    <>
      <PageHead
        title="Projects"
        about={total !== undefined && total > 0 ? count(total) : undefined}
        actions={
          <>
            {!isFirstRun && (
              <>
                <input
                  type="search"
                  aria-label="Search projects, images and labels"
                  placeholder="Search projects, images, labels"
                  value={filter.search}
                  onChange={(event) => change({ search: event.currentTarget.value })}
                />
                <HealthFilter
                  health={health}
                  counts={overview.data?.health}
                  onChange={(next) => change({ health: next })}
                />
              </>
            )}
            {can('projects:write') && !(isFirstRun && !isNew) && (
              <DialogButton title="New project" label="New project" startsOpen={isNew}>
                {() => <NewProject />}
              </DialogButton>
            )}
          </>
        }
      />
      <Incidents incidents={overview.data?.incidents ?? []} />
      {isFirstRun ? (
        <FirstRun />
      ) : (
        <Shown of={projects} skeleton={<SkeletonRows count={8} />}>
          {(items) =>
            items.length === 0 ? (
              <Empty title="Nothing found.">
                No project matches.{' '}
                <button type="button" className="link" onClick={() => change({ search: '', health: '' })}>
                  Show all {total !== undefined && count(total)}
                </button>
              </Empty>
            ) : (
              <>
                <ProjectTable items={items} sort={sort} onSort={(next) => change({ sort: next })} />
                <EndOfList of={projects} shown={items.length} total={isFiltered ? undefined : total} />
              </>
            )
          }
        </Shown>
      )}
    </>
  );
}

const healthNames: [Health, string][] = [
  ['down', 'Down'],
  ['degraded', 'Degraded'],
  ['healthy', 'Healthy'],
  ['idle', 'Nothing deployed'],
];

interface HealthFilterProps {
  health: Health | '';
  counts: Overview['health'] | undefined;
  onChange(health: Health | ''): void;
}

function HealthFilter({ health, counts, onChange }: HealthFilterProps) {
  return (
    <select
      aria-label="Filter by health"
      value={health}
      onChange={(event) => onChange(event.currentTarget.value as Health | '')}
    >
      <option value="">Health: any</option>
      {healthNames.map(([value, name]) => (
        <option key={value} value={value}>
          {name}
          {counts && ` (${count(counts[value])})`}
        </option>
      ))}
    </select>
  );
}

const incidentsShown = 3;

export function Incidents({ incidents }: { incidents: Overview['incidents'] }) {
  if (incidents.length === 0) return null;
  const more = incidents.length - incidentsShown;
  return (
    <ul className="incidents" aria-label="Environments that do not serve as they should">
      {incidents.slice(0, incidentsShown).map(({ project_id, project_name, environment, state, since, reason }) => (
        <li key={`${project_id} ${environment}`} className={state}>
          <strong>
            {project_name} · {environment}
          </strong>{' '}
          {state === 'down' ? 'went down' : 'became degraded'} <Ago at={since} />. {reason}{' '}
          <Link to={`/projects/${project_id}/environments/${environment}`}>
            See why
            <span className="unseen">
              {' '}
              {project_name} {environment} is {state}
            </span>
          </Link>
        </li>
      ))}
      {more > 0 && <li className="degraded">And {plural(more, 'more environment')}.</li>}
    </ul>
  );
}

const columns: [name: string, sort: Sort | null][] = [
  ['Project', 'name'],
  ['State', 'health'],
  ['Live', null],
  ['Traffic', null],
  ['Requests, 1 h', null],
  ['Errors', null],
  ['Last change', null],
  ['When', 'deployed'],
];

interface TableProps {
  items: ProjectOverview[];
  sort: Sort;
  onSort(sort: Sort): void;
}

function ProjectTable({ items, sort, onSort }: TableProps) {
  return (
    <div className="table-scroll">
      <table className="table dense projects">
        <caption className="unseen">Projects</caption>
        <thead>
          <tr>
            {columns.map(([name, by]) => (
              <th
                key={name}
                scope="col"
                aria-sort={by === sort ? (sort === 'deployed' ? 'descending' : 'ascending') : undefined}
              >
                {by === null ? (
                  name
                ) : (
                  <button type="button" className="sort" onClick={() => onSort(by === sort ? 'newest' : by)}>
                    {name}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((project) => (
            <ProjectRow key={project.id} project={project} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The worst off comes first; of those that are fine, production. */
function mainOf({ environments }: ProjectOverview): EnvironmentOverview | undefined {
  const isWrong = ({ health }: EnvironmentOverview) => health.state === 'down' || health.state === 'degraded';
  return environments.find(isWrong) ?? environments.find(({ name }) => name === 'production') ?? environments[0];
}

function ProjectRow({ project }: { project: ProjectOverview }) {
  const main = mainOf(project);
  const others = project.environments.filter((each) => each !== main);
  const firing = project.environments.reduce((sum, { firing_alerts }) => sum + (firing_alerts ?? 0), 0);
  const at = `/projects/${project.id}`;
  const last = main?.last_deployment ?? null;
  const requests = main?.requests ?? null;
  return (
    <tr>
      <th scope="row">
        <div>
          <Link to={at}>{project.name}</Link>{' '}
          {firing > 0 && (
            <Link to={`${at}/alerts`} className="count">
              {firing}
              <span className="unseen"> {firing === 1 ? 'alert' : 'alerts'} firing</span>
            </Link>
          )}{' '}
          <span className="environments-of">
            {main && <Link to={`${at}/environments/${main.name}`}>{main.name}</Link>}
            {others.map(({ name, health }) => (
              <Fragment key={name}>
                ,{' '}
                <span>
                  <Dot health={health} />
                  <Link to={`${at}/environments/${name}`}>{name}</Link>
                </span>
              </Fragment>
            ))}
          </span>
        </div>
      </th>
      <td data-label="State">
        <div>
          {main && (
            <>
              <Dot health={main.health} last={last} /> {stateOf(main, last)}
            </>
          )}
        </div>
      </td>
      <td data-label="Live">
        <div className="mono" title={main?.image ?? undefined}>
          {main?.active_revision && main.image ? `${main.active_revision} ${tagOf(main.image)}` : null}
        </div>
      </td>
      <td data-label="Traffic">
        <div className="row tight">{main && <Traffic environment={main} />}</div>
      </td>
      <td data-label="Requests, 1 h">
        <div className="row tight requests">
          {requests?.rates.some((rate) => rate > 0) ? (
            <>
              <Sparkline values={requests.rates} label={`Requests of the last hour, ${perSecond(requests.rate)} now`} />
              <span className="number">{perSecond(requests.rate)}</span>
            </>
          ) : null}
        </div>
      </td>
      <td data-label="Errors">
        <div className={requests?.error_rate && requests.error_rate >= 0.01 ? 'number wrong' : 'number'}>
          {requests?.error_rate == null ? null : percent(requests.error_rate)}
        </div>
      </td>
      <td data-label="Last change">
        <div className="row tight">
          {last && <LastChange last={last} />}
          {last && last.finished_at === null && <CanaryControls deployment={last} isBrief />}
        </div>
      </td>
      <td data-label="When">
        <div className="dim">
          {last && (
            <>
              <Ago at={last.finished_at ?? last.created_at} isShort />
              {last.created_by_name && (
                <span className="by-whom">
                  {' · '}
                  <span className="by">{last.created_by_name}</span>
                </span>
              )}
            </>
          )}
        </div>
      </td>
    </tr>
  );
}

function Traffic({ environment }: { environment: EnvironmentOverview }) {
  const { traffic } = environment;
  if (traffic.length < 2) return null;
  const shares = sharesOf(environment);
  const canary = shares.find(({ fresh }) => fresh);
  return (
    <>
      <ShareBar shares={shares} isSlim />
      <span className="small">{canary?.percent} %</span>
    </>
  );
}

const doing: Record<string, string> = {
  queued: 'is queued',
  preparing: 'pulls its image',
  starting: 'starts',
  promoting: 'takes over',
  aborting: 'is aborted',
};

type Last = NonNullable<EnvironmentOverview['last_deployment']>;

export function LastChange({ last }: { last: Last }) {
  const { project_id, id, revision, state, kind, failure } = last;
  const text =
    state === 'canary'
      ? `${revision} canary`
      : state === 'succeeded'
        ? `${revision} ${kind === 'rollback' ? 'rolled back' : 'deployed'}`
        : state === 'failed' || state === 'canceled'
          ? `${revision} ${endOf(last)}${failure && failure.code !== 'aborted' ? `: ${reasonOf(failure)}` : ''}`
          : `${revision} ${doing[state] ?? state}`;
  return (
    <Link
      to={`/projects/${project_id}/deployments/${id}`}
      className={state === 'failed' ? 'cut wrong' : 'cut'}
      title={text}
    >
      {text}
    </Link>
  );
}

interface EndProps {
  of: { hasMore: boolean; isReading: boolean; loadMore(): void };
  shown: number;
  total: number | undefined;
}

/** Reads more as its end comes into view; a button does the same. */
export function EndOfList({ of, shown, total }: EndProps) {
  const end = useRef<HTMLParagraphElement>(null);
  const { hasMore, isReading, loadMore } = of;
  // biome-ignore lint/correctness/useExhaustiveDependencies: loadMore is another function in each render
  useEffect(() => {
    if (!hasMore || isReading) return;
    const seen = new IntersectionObserver(([entry]) => entry?.isIntersecting && loadMore(), { rootMargin: '400px' });
    seen.observe(end.current!);
    return () => seen.disconnect();
  }, [hasMore, isReading, shown]);
  return (
    <p className="small" ref={end}>
      {total !== undefined && total > shown
        ? `${count(shown)} of ${plural(total, 'project')}`
        : plural(shown, 'project')}
      {hasMore && (
        <>
          {' · more as you scroll '}
          <button type="button" className="link" onClick={loadMore}>
            Load more
          </button>
        </>
      )}
    </p>
  );
}

function NewProject() {
  const { client } = useSignedIn();
  const regions = useList('regions', (each, page) => each.regions.list(page).page());
  const submit = async (data: FormData) => {
    const project = await client.projects.create({
      name: textField(data, 'name') ?? '',
      ...(textField(data, 'slug') && { slug: textField(data, 'slug')! }),
      ...(textField(data, 'description') && { description: textField(data, 'description')! }),
      ...(textField(data, 'region') && { region: textField(data, 'region')! }),
    });
    notify(`Created ${project.name}.`);
    const [first] = project.environments;
    navigate(`/projects/${project.id}${first ? `/environments/${first}` : ''}`);
  };
  const choices = (regions.data ?? []).map(({ name, engine }) => [name, `${name} (${engine})`] as const);
  return (
    <Form label="New project" verb="Create project" submit={submit}>
      <Input name="name" label="Name" required maxLength={100} autoFocus />
      <Input
        name="slug"
        label="Slug"
        hint="Part of the addresses of its environments: small letters, digits and hyphens. Left empty, it is made from the name."
        pattern="[a-z][a-z0-9\-]{0,38}"
        title="must begin with a letter and have only small letters, digits and hyphens, 39 at most"
      />
      <Input name="description" label="Description" maxLength={1000} />
      {choices.length > 1 && <Select name="region" label="Region" options={choices} />}
    </Form>
  );
}

/** The first minute: two steps, in the browser or on the command line. */
function FirstRun() {
  const can = useCan();
  return (
    <section className="panel first-run" aria-labelledby="first">
      <h2 id="first">Deploy something in under a minute</h2>
      <ol>
        <li>
          <strong>Create a project.</strong> It is an application that you deploy. It gets an environment{' '}
          <code>production</code> with an address of its own.
          {can('projects:write') && (
            <div className="row">
              <DialogButton title="New project" label="Create a project">
                {() => <NewProject />}
              </DialogButton>
            </div>
          )}
        </li>
        <li>
          <strong>Deploy an image to it.</strong> Any image with a web server, from a registry or just built on the
          Docker of this service; the page of the project asks for its name.
        </li>
        <li>
          <strong>Deploy the next one as a canary.</strong> It gets a share of the requests, and the rest once it has
          proved itself.
        </li>
      </ol>
      <p className="small">The same on the command line:</p>
      <Copyable text="npx sluice projects create shop" label="the command" />
      <Copyable text="npx sluice deploy registry.example/shop:1.4 --project shop" label="the command" />
    </section>
  );
}
