import { useState } from 'react';
import type { DeploymentState } from '../../../src/client/index.ts';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { DeploymentTable, useDeployments } from '../components/sections/deployment-list.tsx';
import type { Params } from '../router.ts';
import { useSteady } from '../use-read.ts';
import { useProject } from './project.tsx';

const states = [
  ['', 'All states'],
  ['canary', 'Canary'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['canceled', 'Canceled'],
] as const satisfies [DeploymentState | '', string][];

function useFilters() {
  const [state, setState] = useState<DeploymentState | ''>('');
  return { state, setState, typed: useTyped() };
}

interface FiltersProps {
  filters: ReturnType<typeof useFilters>;
  of: { data: unknown[] | undefined };
}

function Filters({ filters: { state, setState, typed }, of }: FiltersProps) {
  if (state === '' && typed.text === '' && typed.search === '' && of.data?.length === 0) return null;
  return (
    <>
      <SearchBox typed={typed} label="Search deployments by image, note, revision or person" />
      <select
        aria-label="Filter by state"
        value={state}
        onChange={(event) => setState(event.currentTarget.value as DeploymentState | '')}
      >
        {states.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </>
  );
}

export function DeploymentsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const filters = useFilters();
  const { state } = filters;
  const { search } = filters.typed;
  const deployments = useSteady(useDeployments({ project: id, state, search }));
  return (
    <>
      <PageHead
        title="Deployments"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
        actions={<Filters filters={filters} of={deployments} />}
      />
      <ProjectTabs id={id} />
      <DeploymentTable of={deployments} where={{ project: id, state, search }} />
    </>
  );
}

export function AllDeploymentsPage() {
  const filters = useFilters();
  const { state } = filters;
  const { search } = filters.typed;
  const deployments = useSteady(useDeployments({ state, search }));
  return (
    <>
      <PageHead title="Deployments" actions={<Filters filters={filters} of={deployments} />} />
      <DeploymentTable of={deployments} where={{ state, search }} />
    </>
  );
}
