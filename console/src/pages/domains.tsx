import type { AccountDomain } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { Empty, More, NothingFound, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { Domains } from '../components/sections/domain-list.tsx';
import type { Params } from '../router.ts';
import { useList, useSteady } from '../use-read.ts';
import { oldestFirst, useEnvironments, useProject } from './project.tsx';

export function DomainsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const environments = useEnvironments(id);
  return (
    <>
      <PageHead
        title="Domains"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
      />
      <ProjectTabs id={id} />
      <Domains project={id} environments={oldestFirst(environments.data ?? []).map(({ name }) => name)} />
    </>
  );
}

const states: Record<AccountDomain['state'], string> = {
  pending: 'waits for DNS',
  issuing: 'certificate is being issued',
  active: 'served',
  failed: 'certificate failed',
};

export function AllDomainsPage() {
  const typed = useTyped();
  const { search } = typed;
  const domains = useSteady(
    useList<AccountDomain>(
      `domains/all/${search}`,
      (client, page) => client.overview.domains({ ...page, ...(search && { search }) }).page(),
      { project: '*' },
    ),
  );
  return (
    <>
      <PageHead
        title="Domains"
        actions={
          <SearchBox typed={typed} label="Search domains by name or project" isEmpty={domains.data?.length === 0} />
        }
      />
      <Shown of={domains}>
        {(items) =>
          items.length === 0 ? (
            search === '' ? (
              <Empty title="No domains yet." command="npx sluice domains add shop.example --project shop">
                <p>
                  An environment answers under hostnames of yours, with certificates that renew themselves. Add one on
                  the page of a project, under Domains: <Link to="/projects">Projects</Link>.
                </p>
              </Empty>
            ) : (
              <NothingFound of={domains} />
            )
          ) : (
            <Table
              label="Domains"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Domain',
                  cell: ({ hostname, project_id }) => (
                    <Link to={`/projects/${project_id}/domains`} className="name">
                      {hostname}
                    </Link>
                  ),
                },
                {
                  name: 'State',
                  cell: ({ state, proof }) =>
                    state === 'failed' && proof === null ? (
                      <Badge state="pending">{states.pending}</Badge>
                    ) : (
                      <Badge state={state}>{states[state]}</Badge>
                    ),
                },
                {
                  name: 'Leads to',
                  cell: ({ project_id, project_name, environment }) => (
                    <Link to={`/projects/${project_id}/environments/${environment}`}>
                      {project_name} / {environment}
                    </Link>
                  ),
                },
                {
                  name: 'Certificate renews',
                  cell: ({ certificate }) => certificate && <Ago at={certificate.renew_at} />,
                },
                { name: 'Last error', cell: ({ last_error }) => last_error ?? '' },
              ]}
            />
          )
        }
      </Shown>
      <More of={domains} />
    </>
  );
}
