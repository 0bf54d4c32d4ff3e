// Who is signed in here, and where else.
import type { Session } from '../../../src/client/index.ts';
import { scopeCatalogue } from '../../../src/contract/scopes.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { ActionButton } from '../components/forms/actions.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { signOut, useSignedIn } from '../session.ts';
import { useList } from '../use-read.ts';

/** "Firefox on Linux", as far as a browser says so. */
function browserOf(userAgent: string | null): string {
  if (userAgent === null) return 'unknown';
  const browser = /(Edg|OPR|Firefox|Chrome|Safari)\//.exec(userAgent)?.[1];
  const system = /(Windows|Mac OS X|Android|iPhone|iPad|Linux)/.exec(userAgent)?.[1];
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera' };
  return browser ? `${names[browser] ?? browser}${system ? ` on ${system}` : ''}` : userAgent.slice(0, 60);
}

export function SessionPage() {
  const { me, client } = useSignedIn();
  const sessions = useList<Session>('sessions', (each, page) => each.sessions.list(page).page(), { project: '*' });
  return (
    <>
      <PageHead
        title="Session"
        actions={
          <button type="button" className="main" onClick={() => void signOut()}>
            Sign out
          </button>
        }
      />
      <section className="panel" aria-labelledby="me">
        <h2 id="me">{me.name}</h2>
        <dl className="facts">
          <dt>Token</dt>
          <dd>
            <code>{me.id}</code>
          </dd>
          <dt>Expires</dt>
          <dd>{me.expires_at === null ? 'Never' : <Ago at={me.expires_at} />}</dd>
          <dt>Projects</dt>
          <dd>{me.project_ids === null ? 'All' : me.project_ids.length}</dd>
        </dl>
        <h3>Scopes</h3>
        <ul className="scopes">
          {me.scopes.map((scope) => (
            <li key={scope}>
              <Badge state="calm">{scope}</Badge> {scopeCatalogue[scope]}
            </li>
          ))}
        </ul>
      </section>
      <section aria-labelledby="sessions">
        <h2 id="sessions">Sessions</h2>
        <p className="hint">
          Browsers that are signed in. A session ends after seven days without use, and with its token.
        </p>
        <Shown of={sessions}>
          {(items) => (
            <Table
              label="Sessions"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Browser',
                  cell: ({ user_agent, current }) => (
                    <span title={user_agent ?? undefined}>
                      {browserOf(user_agent)} {current && <Badge state="calm">this one</Badge>}
                    </span>
                  ),
                },
                { name: 'Token', cell: ({ token_name }) => token_name },
                { name: 'IP address', cell: ({ address }) => address },
                { name: 'Signed in', cell: ({ created_at }) => <Ago at={created_at} /> },
                { name: 'Last used', cell: ({ last_used_at }) => <Ago at={last_used_at} /> },
                {
                  name: 'End',
                  quiet: true,
                  cell: ({ id, current, user_agent }) =>
                    current ? null : (
                      <ActionButton run={() => client.sessions.end(id)} done="The session is ended.">
                        End<span className="unseen"> the session of {browserOf(user_agent)}</span>
                      </ActionButton>
                    ),
                },
              ]}
            />
          )}
        </Shown>
      </section>
    </>
  );
}
