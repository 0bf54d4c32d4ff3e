import { useState } from 'react';
import type { Scope, Token } from '../../../src/client/index.ts';
import { scopeCatalogue, scopes } from '../../../src/contract/scopes.ts';
import { Badge } from '../components/display/badge.tsx';
import { SecretOnce } from '../components/display/secret.tsx';
import { Ago, useNow } from '../components/display/time.tsx';
import { ConfirmButton } from '../components/forms/actions.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
import { Check, Field, Form, Input, Select, textField } from '../components/forms/form.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { More, NothingFound, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { useCan, useSignedIn } from '../session.ts';
import { useList, useSteady } from '../use-read.ts';

export function TokensPage() {
  const typed = useTyped();
  const { search } = typed;
  const tokens = useSteady(
    useList<Token>(
      `tokens/${search}`,
      (client, page) => client.tokens.list({ ...page, ...(search && { search }) }).page(),
      { project: '*' },
    ),
  );
  const can = useCan();
  return (
    <>
      <PageHead
        title="Tokens"
        actions={
          <>
            <SearchBox typed={typed} label="Search tokens by name or scope" />
            {can('tokens:write') && (
              <DialogButton title="New token" label="New token">
                {() => <NewToken />}
              </DialogButton>
            )}
          </>
        }
      />
      <Shown of={tokens}>
        {(items) =>
          items.length === 0 ? (
            <NothingFound of={tokens} />
          ) : (
            <TokenTable items={items} mayRevoke={can('tokens:write')} />
          )
        }
      </Shown>
      <More of={tokens} />
    </>
  );
}

function TokenTable({ items, mayRevoke }: { items: Token[]; mayRevoke: boolean }) {
  const { me } = useSignedIn();
  const can = useCan();
  const now = useNow();
  const stateOf = ({ revoked_at, expires_at }: Token) =>
    revoked_at ? 'revoked' : expires_at && Date.parse(expires_at) < now ? 'expired' : 'active';
  return (
    <Table
      label="Tokens"
      items={items}
      keyOf={({ id }) => id}
      columns={[
        {
          name: 'Name',
          cell: ({ name, id }) => (
            <>
              {name} {id === me.id && <Badge state="calm">current</Badge>}
            </>
          ),
        },
        { name: 'Scopes', cell: ({ scopes: held }) => (held.includes('*') ? 'all' : held.join(', ')) },
        { name: 'State', cell: (token) => <Badge state={stateOf(token)} /> },
        { name: 'Last used', cell: ({ last_used_at }) => (last_used_at ? <Ago at={last_used_at} /> : 'never') },
        { name: 'Expires', cell: ({ expires_at }) => (expires_at ? <Ago at={expires_at} /> : 'never') },
        {
          name: 'Revoke',
          quiet: true,
          cell: (token) =>
            mayRevoke && token.revoked_at === null && token.scopes.every(can) ? (
              <RevokeButton token={token} isOwn={token.id === me.id} />
            ) : null,
        },
      ]}
    />
  );
}

function RevokeButton({ token: { id, name }, isOwn }: { token: Token; isOwn: boolean }) {
  const { client } = useSignedIn();
  const [cascade, setCascade] = useState(false);
  return (
    <ConfirmButton
      title={`Revoke ${name}?`}
      mustType={name}
      about={
        <>
          <p>
            {isOwn
              ? 'You are signed in with this token: you will be signed out.'
              : 'Requests with this token will be rejected. This cannot be undone.'}
          </p>
          <Check
            name={`cascade-${id}`}
            label="Also revoke every token that it created"
            checked={cascade}
            onChange={({ target }) => setCascade(target.checked)}
          />
        </>
      }
      verb="Revoke"
      run={() => client.tokens.revoke(id, cascade ? { cascade: 'true' } : {})}
      done={cascade ? `Revoked ${name} and every token that it created.` : `Revoked ${name}.`}
    >
      Revoke<span className="unseen"> {name}</span>
    </ConfirmButton>
  );
}

const lifetimes = [
  ['', 'Never'],
  ['1', 'In 1 day'],
  ['30', 'In 30 days'],
  ['90', 'In 90 days'],
  ['365', 'In 1 year'],
] as const;

function NewToken() {
  const { client } = useSignedIn();
  const can = useCan();
  const [created, setCreated] = useState<{ name: string; token: string } | null>(null);
  const projects = useList('projects', (each, page) => each.projects.list(page).page(), { project: '*' });
  const submit = async (data: FormData) => {
    const project = textField(data, 'project_ids');
    const days = textField(data, 'expires_at');
    setCreated(
      await client.tokens.create({
        name: textField(data, 'name') ?? '',
        scopes: data.getAll('scopes') as Scope[],
        ...(project && { project_ids: [project] }),
        ...(days && { expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString() }),
      }),
    );
  };
  return (
    <>
      {created && (
        <SecretOnce
          label={`Token ${created.name}`}
          secret={created.token}
          about="Copy it now: it is not shown again."
        />
      )}
      <Form label="New token" verb="Create token" submit={submit}>
        <div className="fields">
          <Input name="name" label="Name" placeholder="deploy from CI" required maxLength={100} />
          <Select name="expires_at" label="Expires" options={lifetimes} />
          <Select
            name="project_ids"
            label="Projects"
            options={[['', 'All projects'], ...(projects.data ?? []).map(({ id, name }) => [id, name] as const)]}
          />
        </div>
        <Field
          name="scopes"
          label="Scopes"
          hint="Limited to the scopes of your own token. Write does not include read."
        >
          {({ id, name, ...described }) => (
            <fieldset id={id} className="checks" {...described}>
              <legend className="unseen">Scopes</legend>
              {scopes.filter(can).map((scope) => (
                <Check
                  key={scope}
                  name={name}
                  value={scope}
                  label={
                    <>
                      <code>{scope}</code> {scopeCatalogue[scope]}
                    </>
                  }
                />
              ))}
            </fieldset>
          )}
        </Field>
      </Form>
    </>
  );
}
