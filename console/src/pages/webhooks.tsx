import { useState } from 'react';
import type { EventKind, Webhook } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { SecretOnce } from '../components/display/secret.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { Check, Field, Form, Input, Select, textField } from '../components/forms/form.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { Empty, More, NothingFound, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { useCan, useSignedIn } from '../session.ts';
import { useList, useSteady } from '../use-read.ts';

export const eventKindNames: Record<EventKind, string> = {
  'deployment.created': 'Deployment created',
  'deployment.succeeded': 'Deployment succeeded',
  'deployment.failed': 'Deployment failed or canceled',
  'revision.rolled_back': 'Revision rolled back',
  'alert.fired': 'Alert fired',
  'alert.resolved': 'Alert resolved',
  'domain.certificate_renewed': 'Certificate renewed',
};

export function WebhooksPage() {
  const typed = useTyped();
  const { search } = typed;
  const webhooks = useSteady(
    useList<Webhook>(
      `webhooks/${search}`,
      (client, page) => client.webhooks.list({ ...page, ...(search && { search }) }).page(),
      { project: '*' },
    ),
  );
  const can = useCan();
  return (
    <>
      <PageHead
        title="Webhooks"
        actions={
          <>
            <SearchBox
              typed={typed}
              label="Search webhooks by URL, description, event or project"
              isEmpty={webhooks.data?.length === 0}
            />
            {can('webhooks:write') && (
              <DialogButton title="New webhook" label="New webhook">
                {() => <NewWebhook />}
              </DialogButton>
            )}
          </>
        }
      />
      <Shown of={webhooks}>
        {(items) =>
          items.length === 0 ? (
            search === '' ? (
              <Empty
                title="No webhooks yet."
                command="npx sluice webhooks create https://hooks.example/sluice --events deployment.failed"
              >
                A webhook receives signed events at a URL of yours. Create one, then send it a test.
              </Empty>
            ) : (
              <NothingFound of={webhooks} />
            )
          ) : (
            <Table
              label="Webhooks"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'URL', cell: ({ id, url }) => <Link to={`/webhooks/${id}`}>{url}</Link> },
                { name: 'Events', cell: ({ events }) => (events.includes('*') ? 'all' : events.join(', ')) },
                {
                  name: 'Project',
                  cell: ({ project_id }) => (project_id === null ? 'all' : <ProjectName id={project_id} />),
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
    </>
  );
}

const useProjects = () => useList('projects', (client, page) => client.projects.list(page).page(), { project: '*' });

function ProjectName({ id }: { id: string }) {
  const projects = useProjects();
  return projects.data?.find((project) => project.id === id)?.name ?? id;
}

export function EventKinds({ chosen }: { chosen: readonly string[] }) {
  return (
    <Field name="events" label="Events">
      {({ id, name, ...described }) => (
        <fieldset id={id} className="checks" {...described}>
          <legend className="unseen">Events</legend>
          <Check
            name={name}
            value="*"
            defaultChecked={chosen.includes('*')}
            label="All events, including future kinds"
          />
          {Object.entries(eventKindNames).map(([kind, text]) => (
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

/** `*` includes every kind, so it stands alone. */
export function kindsIn(data: FormData): Webhook['events'] {
  const chosen = data.getAll('events') as Webhook['events'];
  return chosen.includes('*') ? ['*'] : chosen;
}

function NewWebhook() {
  const { client } = useSignedIn();
  const projects = useProjects();
  const [created, setCreated] = useState<{ url: string; secret: string } | null>(null);
  const submit = async (data: FormData) => {
    const project = textField(data, 'project_id');
    const description = textField(data, 'description');
    setCreated(
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
    <>
      {created && (
        <SecretOnce
          label={`Secret of ${created.url}`}
          secret={created.secret}
          about="The receiver needs it to verify signatures. Copy it now: it is not shown again."
        />
      )}
      <Form label="New webhook" verb="Create webhook" submit={submit}>
        <div className="fields">
          <Input name="url" label="URL" type="url" required placeholder="https://hooks.example/sluice" />
          <Select
            name="project_id"
            label="Project"
            options={[['', 'All projects'], ...(projects.data ?? []).map(({ id, name }) => [id, name] as const)]}
          />
          <Select
            name="ordering"
            label="Ordering"
            options={[
              ['none', 'None: as fast as possible'],
              ['strict', 'Strict: one at a time, in sequence'],
            ]}
          />
          <Input name="description" label="Description" />
        </div>
        <EventKinds chosen={['*']} />
      </Form>
    </>
  );
}
