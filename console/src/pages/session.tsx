import { scopeCatalogue } from '../../../src/contract/scopes.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago } from '../components/display/time.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { signOut, useSignedIn } from '../session.ts';

export function SessionPage() {
  const { me } = useSignedIn();
  return (
    <>
      <PageHead
        title="Session"
        actions={
          <button type="button" className="main" onClick={() => signOut('Signed out.')}>
            Sign out
          </button>
        }
      />
      <section className="panel">
        <h2>{me.name}</h2>
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
    </>
  );
}
