import type { Region, Registry } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { ConfirmButton } from '../components/forms/actions.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { notify } from '../components/layout/notices.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { plural } from '../format.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useList } from '../use-read.ts';

export function RegistriesPage() {
  const { client } = useSignedIn();
  const can = useCan();
  const registries = useList<Registry>('registries', (each, page) => each.registries.list(page).page(), {
    project: '*',
  });
  const add = can('projects:write') && (
    <DialogButton title="Add a registry login" label="Add login">
      {(close) => <AddLogin onDone={close} />}
    </DialogButton>
  );
  return (
    <>
      <PageHead title="Registries" actions={registries.data && registries.data.length > 0 && add} />
      <Shown of={registries}>
        {(items) =>
          items.length === 0 ? (
            <Empty
              title="No registry logins."
              command="npx sluice registries add ghcr.io --user ann --password-stdin < token"
            >
              <p>Public images need none. A login lets Sluice pull private images from a registry.</p>
              {add}
            </Empty>
          ) : (
            <Table
              label="Registry logins"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Registry', cell: ({ host }) => <code>{host}</code> },
                { name: 'User', cell: ({ username }) => username },
                {
                  name: 'Projects',
                  cell: ({ project_ids }) => (project_ids === null ? 'all' : plural(project_ids.length, 'project')),
                },
                { name: 'Added', cell: ({ created_at }) => <Ago at={created_at} /> },
                {
                  name: 'Remove',
                  quiet: true,
                  cell: ({ id, host, username }) =>
                    can('projects:write') && (
                      <ConfirmButton
                        title={`Remove the login at ${host}?`}
                        mustType={host}
                        about={`Images of ${host} that need ${username} can no longer be pulled. What runs goes on.`}
                        verb="Remove login"
                        run={() => client.registries.delete(id)}
                        done={`Removed the login at ${host}.`}
                      >
                        Remove<span className="unseen"> {host}</span>
                      </ConfirmButton>
                    ),
                },
              ]}
            />
          )
        }
      </Shown>
      <More of={registries} />
    </>
  );
}

function AddLogin({ onDone }: { onDone(): void }) {
  const { client } = useSignedIn();
  const projects = useList('projects', (each, page) => each.projects.list(page).page(), { project: '*' });
  const submit = async (data: FormData) => {
    const project = textField(data, 'project_ids');
    const { host } = await client.registries.create({
      host: textField(data, 'host') ?? '',
      username: textField(data, 'username') ?? '',
      password: String(data.get('password') ?? ''),
      ...(project && { project_ids: [project] }),
    });
    notify(`Added the login at ${host}.`);
    onDone();
  };
  return (
    <Form label="Add a registry login" verb="Add login" submit={submit}>
      <Input
        name="host"
        label="Registry"
        placeholder="ghcr.io"
        required
        pattern="[a-z0-9]([a-z0-9.\-]*[a-z0-9])?(:[0-9]{1,5})?"
        title="must be a host name as images have it, with its port if it has one"
        hint="As image names have it; docker.io for Docker Hub."
      />
      <Input name="username" label="User" required maxLength={255} />
      <Input
        name="password"
        label="Password or token"
        type="password"
        autoComplete="new-password"
        required
        hint="Never shown again."
      />
      <Select
        name="project_ids"
        label="For images of"
        options={[['', 'All projects'], ...(projects.data ?? []).map(({ id, name }) => [id, name] as const)]}
      />
    </Form>
  );
}

const engines: Record<Region['engine'], string> = {
  standin: 'stand-in: small web servers in place of containers',
  docker: 'Docker',
  kubernetes: 'Kubernetes',
};

export function RegionsPage() {
  const regions = useList<Region>('regions', (each, page) => each.regions.list(page).page(), { pollMs: () => 5000 });
  return (
    <>
      <PageHead title="Regions" />
      <p className="lead">
        A region is an engine that runs instances, such as Docker on this machine. Each environment is in one; the
        operator sets them up with <code>SLUICE_REGIONS</code>.
      </p>
      <Shown of={regions}>
        {(items) => (
          <Table
            label="Regions"
            items={items}
            keyOf={({ name }) => name}
            columns={[
              { name: 'Region', cell: ({ name }) => <strong>{name}</strong> },
              { name: 'Engine', cell: ({ engine }) => engines[engine] },
              { name: 'State', cell: ({ available }) => <Badge state={available ? 'available' : 'unavailable'} /> },
              {
                name: 'Machines',
                cell: ({ hosts }) =>
                  hosts === undefined
                    ? '–'
                    : hosts.map(({ name, available }) => `${name}${available ? '' : ' (unavailable)'}`).join(', '),
              },
              {
                name: 'Checked',
                cell: ({ last_checked_at }) => (last_checked_at ? <Ago at={last_checked_at} /> : '–'),
              },
            ]}
          />
        )}
      </Shown>
    </>
  );
}
