import { useState } from 'react';
import type { DeploymentState } from '../../../src/client/index.ts';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { DeploymentTable, useDeployments } from '../components/sections/deployment-list.tsx';
import type { Params } from '../router.ts';
import { useSteady } from '../use-read.ts';
import { useProject } from './project.tsx';

const filters = [
  ['', 'All states'],
  ['canary', 'Canary'],
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['canceled', 'Canceled'],
] as const satisfies [DeploymentState | '', string][];

function useFilters() {
  const [state, setState] = useState<DeploymentState | ''>('');
  const typed = useTyped();
  const actions = (
    <>
      <SearchBox typed={typed} label="Search deployments by image, note, revision or person" />
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
    </>
  );
  return { state, search: typed.search, actions };
}

export function DeploymentsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const { state, search, actions } = useFilters();
  const deployments = useSteady(useDeployments({ project: id, state, search }));
  return (
    <>
      <PageHead
        title="Deployments"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
        actions={actions}
      />
      <ProjectTabs id={id} />
      <DeploymentTable of={deployments} where={{ project: id, search }} />
    </>
  );
}

export function AllDeploymentsPage() {
  const { state, search, actions } = useFilters();
  const deployments = useSteady(useDeployments({ state, search }));
  return (
    <>
      <PageHead title="Deployments" actions={actions} />
      <DeploymentTable of={deployments} where={{ search }} />
    </>
  );
}
