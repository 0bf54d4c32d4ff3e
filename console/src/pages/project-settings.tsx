import type { Project } from '../../../src/client/index.ts';
import { ConfirmButton } from '../components/forms/actions.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { notify } from '../components/layout/notices.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Fault, Shown } from '../components/layout/states.tsx';
import { plural } from '../format.ts';
import { navigate, type Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useList, useRead } from '../use-read.ts';
import { useEnvironments, useProject } from './project.tsx';

export function ProjectSettingsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const can = useCan();
  return (
    <>
      <PageHead
        title="Settings"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
      />
      <ProjectTabs id={id} />
      <Shown of={project}>
        {(data) =>
          can('projects:write') ? (
            <>
              <ProjectDetails project={data} />
              <NewEnvironment project={data} />
              <Delete project={data} />
            </>
          ) : (
            <Fault
              error={new Error('Your token lacks the scope projects:write.')}
              remedy="Sign in with a token that has it."
            />
          )
        }
      </Shown>
    </>
  );
}

function ProjectDetails({ project }: { project: Project }) {
  const { client } = useSignedIn();
  const submit = async (data: FormData) => {
    const labels = (textField(data, 'labels') ?? '')
      .split(',')
      .map((label) => label.trim())
      .filter(Boolean);
    await client.projects.update(project.id, {
      name: textField(data, 'name') ?? '',
      slug: textField(data, 'slug') ?? '',
      description: textField(data, 'description') ?? null,
      labels,
    });
    notify(`Saved ${textField(data, 'name') ?? project.name}.`);
  };
  return (
    <section className="panel" aria-labelledby="details">
      <h2 id="details">Project</h2>
      <Form label="Project" verb="Save" submit={submit} keep>
        <div className="fields">
          <Input name="name" label="Name" defaultValue={project.name} />
          <Input
            name="slug"
            label="Slug"
            defaultValue={project.slug}
            hint="For new environments: existing ones keep their addresses."
          />
          <Input name="description" label="Description" defaultValue={project.description ?? ''} />
          <Input name="labels" label="Labels" defaultValue={project.labels.join(', ')} hint="Comma-separated." />
        </div>
      </Form>
    </section>
  );
}

function NewEnvironment({ project }: { project: Project }) {
  const { client } = useSignedIn();
  const regions = useList('regions', (each, page) => each.regions.list(page).page());
  const submit = async (data: FormData) => {
    const name = textField(data, 'name') ?? '';
    const region = textField(data, 'region');
    await client.environments.create(project.id, { name, ...(region && { region }) });
    navigate(`/projects/${project.id}/environments/${name}`);
  };
  return (
    <section className="panel" aria-labelledby="new-environment">
      <h2 id="new-environment">New environment</h2>
      <p className="hint">Existing environments: {project.environments.join(', ') || 'none'}.</p>
      <Form label="New environment" verb="Create environment" submit={submit}>
        <div className="fields">
          <Input
            name="name"
            label="Name"
            placeholder="staging"
            required
            pattern="[a-z][a-z0-9\-]{0,22}"
            title="must begin with a letter and have only small letters, digits and hyphens, 23 at most"
            hint="Small letters, digits and hyphens."
          />
          <Select
            name="region"
            label="Region"
            options={(regions.data ?? []).map(
              ({ name, engine, available }) =>
                [name, `${name} (${engine}${available ? '' : ', unavailable'})`] as const,
            )}
          />
        </div>
      </Form>
    </section>
  );
}

function Delete({ project }: { project: Project }) {
  const { client } = useSignedIn();
  const environments = useEnvironments(project.id);
  const domains = useRead(
    `domains/${project.id}/names`,
    async (each) => (await each.domains.list(project.id, { limit: 100 }).page()).data.map(({ hostname }) => hostname),
    { project: project.id },
  );
  const running = (environments.data ?? []).filter(({ active_revision }) => active_revision !== null);
  const instances = running.reduce((sum, { replicas }) => sum + replicas, 0);
  const names = domains.data ?? [];
  return (
    <section className="panel danger-zone" aria-labelledby="delete">
      <h2 id="delete">Delete {project.name}</h2>
      <ConfirmButton
        title={`Delete ${project.name}?`}
        mustType={project.name}
        className="quiet bad"
        about={
          <>
            <p>This cannot be undone.</p>
            <ul>
              <li>
                {running.length === 0
                  ? 'Nothing runs in it.'
                  : `${plural(instances, 'instance')} of ${running.map(({ name }) => name).join(', ')} ${instances === 1 ? 'stops' : 'stop'}, and ${running.length === 1 ? 'its address no longer answers' : 'their addresses no longer answer'}.`}
              </li>
              <li>{names.length === 0 ? 'It has no domains.' : `No longer served: ${names.join(', ')}.`}</li>
              <li>Its certificates, revisions, variables, alert rules and logs are deleted.</li>
            </ul>
          </>
        }
        verb="Delete project"
        run={async () => {
          await client.projects.delete(project.id);
          navigate('/projects');
        }}
        done={`Deleted ${project.name}.`}
      >
        Delete project
      </ConfirmButton>
    </section>
  );
}
