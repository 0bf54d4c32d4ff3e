import { useState } from 'react';
import type { EventKind, Webhook } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { SecretOnce } from '../components/display/secret.tsx';
import { Check, Field, Form, Input, Select, textField } from '../components/forms/form.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { useCan, useSignedIn } from '../session.ts';
import { useList } from '../use-read.ts';

const kinds: Record<EventKind, string> = {
  'deployment.created': 'A deployment was asked for',
  'deployment.succeeded': 'It serves all traffic',
  'deployment.failed': 'It failed or was canceled',
  'revision.rolled_back': 'A revision lost its traffic',
  'alert.fired': 'An alert fired',
  'alert.resolved': 'It is over',
  'domain.certificate_renewed': 'A certificate was renewed',
};

export function WebhooksPage() {
  const webhooks = useList<Webhook>('webhooks', (client, page) => client.webhooks.list(page).page(), { project: '*' });
  const can = useCan();
  return (
    <>
      <PageHead title="Webhooks" />
      <Shown of={webhooks}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No webhooks yet.">
              A webhook is an address of yours that is told of events, signed. Register one below, then send it a test.
            </Empty>
          ) : (
            <Table
              label="Webhooks"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Address', cell: ({ id, url }) => <Link to={`/webhooks/${id}`}>{url}</Link> },
                { name: 'Told of', cell: ({ events }) => (events.includes('*') ? 'everything' : events.join(', ')) },
                {
                  name: 'Of',
                  cell: ({ project_id }) => (project_id === null ? 'all projects' : <ProjectName id={project_id} />),
                },
                {
                  name: 'State',
                  cell: ({ state, failing_since }) => (
                    <>
                      <Badge state={state} /> {failing_since && <Badge state="failed">failing</Badge>}
                    </>
                  ),
                },
                { name: 'Description', cell: ({ description }) => description ?? '' },
              ]}
            />
          )
        }
      </Shown>
      <More of={webhooks} />
      {can('webhooks:write') && <NewWebhook />}
    </>
  );
}

const useProjects = () => useList('projects', (client, page) => client.projects.list(page).page(), { project: '*' });

function ProjectName({ id }: { id: string }) {
  const projects = useProjects();
  return projects.data?.find((project) => project.id === id)?.name ?? id;
}

export function KindChoice({ chosen }: { chosen: readonly string[] }) {
  return (
    <Field name="events" label="Told of">
      {({ id, name, ...described }) => (
        <fieldset id={id} className="checks" {...described}>
          <legend className="unseen">Told of</legend>
          <Check name={name} value="*" defaultChecked={chosen.includes('*')} label="Everything, also what is to come" />
          {Object.entries(kinds).map(([kind, text]) => (
            <Check
              key={kind}
              name={name}
              value={kind}
              defaultChecked={chosen.includes(kind)}
              label={
                <>
                  {text} <code>{kind}</code>
                </>
              }
            />
          ))}
        </fieldset>
      )}
    </Field>
  );
}

/** All is all: the others are then left out. */
export function kindsIn(data: FormData): Webhook['events'] {
  const chosen = data.getAll('events') as Webhook['events'];
  return chosen.includes('*') ? ['*'] : chosen;
}

function NewWebhook() {
  const { client } = useSignedIn();
  const projects = useProjects();
  const [made, setMade] = useState<{ url: string; secret: string } | null>(null);
  const submit = async (data: FormData) => {
    const project = textField(data, 'project_id');
    const description = textField(data, 'description');
    setMade(
      await client.webhooks.create({
        url: textField(data, 'url') ?? '',
        events: kindsIn(data),
        ordering: textField(data, 'ordering') as Webhook['ordering'],
        ...(project && { project_id: project }),
        ...(description && { description }),
      }),
    );
  };
  return (
    <section className="panel" aria-labelledby="new">
      <h2 id="new">New webhook</h2>
      {made && (
        <SecretOnce
          label={`Secret of ${made.url}`}
          secret={made.secret}
          about="It signs every delivery, and is shown this once: store it where the receiver finds it."
        />
      )}
      <Form label="New webhook" verb="Register webhook" submit={submit}>
        <div className="fields">
          <Input name="url" label="Address" type="url" placeholder="https://hooks.example/sluice" />
          <Select
            name="project_id"
            label="Of"
            options={[['', 'All projects'], ...(projects.data ?? []).map(({ id, name }) => [id, name] as const)]}
          />
          <Select
            name="ordering"
            label="Order"
            options={[
              ['none', 'as fast as possible'],
              ['strict', 'strict: one at a time, in sequence'],
            ]}
          />
          <Input name="description" label="Description" />
        </div>
        <KindChoice chosen={['*']} />
      </Form>
    </section>
  );
}
