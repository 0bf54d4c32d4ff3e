import type { Project } from '../../../src/client/index.ts';
import { HealthBadge, HealthReason } from '../components/display/health.tsx';
import { Ago } from '../components/display/time.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { navigate } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useList } from '../use-read.ts';

export function ProjectsPage() {
  const projects = useList('projects', (client, page) => client.projects.list(page).page(), { project: '*' });
  const can = useCan();
  return (
    <>
      <PageHead title="Projects" />
      <Shown of={projects}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No projects yet.">
              A project is an application that you deploy. It has environments, each with a URL of its own. Create a
              project below, then deploy an image to its environment <code>production</code>.
            </Empty>
          ) : (
            <ul className="cards">
              {items.map((project) => (
                <ProjectCard key={project.id} project={project} />
              ))}
            </ul>
          )
        }
      </Shown>
      <More of={projects} />
      {can('projects:write') && <CreateProject />}
    </>
  );
}

function ProjectCard({ project }: { project: Project }) {
  return (
    <li className="card">
      <div className="title-row">
        <h2>
          <Link to={`/projects/${project.id}`} className="whole">
            {project.name}
          </Link>
        </h2>
        <HealthBadge health={project.health} where={project.health.environment ?? ''} />
      </div>
      <HealthReason health={project.health} />
      {project.description && <p>{project.description}</p>}
      <p className="small">
        {project.environments.join(', ')} · updated <Ago at={project.updated_at} />
      </p>
      {project.labels.length > 0 && (
        <ul className="labels">
          {project.labels.map((label) => (
            <li key={label}>{label}</li>
          ))}
        </ul>
      )}
    </li>
  );
}

function CreateProject() {
  const { client } = useSignedIn();
  const regions = useList('regions', (each, page) => each.regions.list(page).page());
  const submit = async (data: FormData) => {
    const project = await client.projects.create({
      name: textField(data, 'name') ?? '',
      ...(textField(data, 'slug') && { slug: textField(data, 'slug')! }),
      ...(textField(data, 'description') && { description: textField(data, 'description')! }),
      ...(textField(data, 'region') && { region: textField(data, 'region')! }),
    });
    navigate(`/projects/${project.id}`);
  };
  const choices = (regions.data ?? []).map(({ name, engine }) => [name, `${name} (${engine})`] as const);
  return (
    <section className="panel" aria-labelledby="new-project">
      <h2 id="new-project">New project</h2>
      <Form label="New project" verb="Create project" submit={submit}>
        <div className="fields">
          <Input name="name" label="Name" />
          <Input name="slug" label="Slug" hint="Part of its URLs. Leave empty to derive it from the name." />
          <Input name="description" label="Description" />
          {choices.length > 1 && <Select name="region" label="Region" options={choices} />}
        </div>
      </Form>
    </section>
  );
}
