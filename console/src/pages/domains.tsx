import type { Certificate, Domain } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Ago, dayOf, useNow } from '../components/display/time.tsx';
import { ActionButton, ConfirmButton } from '../components/forms/actions.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { PageHead, ProjectTabs } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import type { Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useList } from '../use-read.ts';
import { oldestFirst, useEnvironments, useProject } from './project.tsx';

/** How often to poll until a certificate is issued. */
const waitingMs = 2000;
const isWaiting = ({ state }: Domain) => state === 'pending' || state === 'issuing';

export function DomainsPage({ params }: { params: Params }) {
  const id = params.id!;
  const project = useProject(id);
  const can = useCan();
  const domains = useList<Domain>(`domains/${id}`, (client, page) => client.domains.list(id, page).page(), {
    project: id,
    pollMs: (data) => (data.some(isWaiting) ? waitingMs : null),
  });
  return (
    <>
      <PageHead
        title="Domains"
        trail={[
          ['/projects', 'Projects'],
          [`/projects/${id}`, project.data?.name ?? 'Project'],
        ]}
      />
      <ProjectTabs id={id} />
      <Shown of={domains}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No domains yet.">
              Every environment already has a URL. To use a domain of your own, point its DNS records here and add it
              below. Its certificate is issued automatically.
            </Empty>
          ) : (
            <ul className="cards wide">
              {items.map((domain) => (
                <DomainCard key={domain.id} project={id} domain={domain} mayChange={can('domains:write')} />
              ))}
            </ul>
          )
        }
      </Shown>
      <More of={domains} />
      {can('domains:write') && <AddDomain project={id} />}
    </>
  );
}

function DomainCard({ project, domain, mayChange }: { project: string; domain: Domain; mayChange: boolean }) {
  const { client } = useSignedIn();
  const { id, hostname, certificate, last_error, next_attempt_at } = domain;
  return (
    <li className="card">
      <div className="title-row">
        <h2>{hostname}</h2>
        <p className="row">
          <Badge state="calm">{domain.environment}</Badge>
          <Badge state={domain.state} />
        </p>
      </div>
      <p className="small">
        <a href={domain.url} target="_blank" rel="noreferrer">
          {domain.url}
        </a>
      </p>
      {certificate ? (
        <Lifetime certificate={certificate} />
      ) : (
        <p className="small">{domain.state === 'active' ? 'Served without a certificate.' : 'No certificate yet.'}</p>
      )}
      {domain.proof === null && <ProofNeeded domain={domain} />}
      {last_error && (
        <p className="fault">
          {last_error}{' '}
          {next_attempt_at && (
            <>
              Next attempt <Ago at={next_attempt_at} />.
            </>
          )}
        </p>
      )}
      {mayChange && (
        <div className="row">
          <ActionButton
            run={() => client.domains.verify(project, id)}
            done={`Checked ${hostname}: its certificate is requested now.`}
          >
            Verify
          </ActionButton>
          <ActionButton run={() => client.domains.renew(project, id)} done="Renewal started." disabled={!certificate}>
            Renew
          </ActionButton>
          <ConfirmButton
            title={`Remove ${hostname}?`}
            about="The domain is no longer served, and its certificate is deleted."
            verb="Remove"
            run={() => client.domains.delete(project, id)}
            done={`Removed ${hostname}.`}
          >
            Remove
          </ConfirmButton>
        </div>
      )}
    </li>
  );
}

function ProofNeeded({ domain: { txt_record } }: { domain: Domain }) {
  return (
    <p className="small">
      Not served yet: it needs a certificate from a public authority, or the TXT record <code>{txt_record.name}</code>{' '}
      with the value <code>{txt_record.value}</code>. Then verify.
    </p>
  );
}

/** The lifetime of a certificate as a bar: how much has passed, and when it will be renewed. */
function Lifetime({ certificate: { not_before, not_after, renew_at, issuer } }: { certificate: Certificate }) {
  const now = useNow();
  const [from, to] = [Date.parse(not_before), Date.parse(not_after)];
  const placeOf = (at: number) => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));
  const elapsed = placeOf(now);
  const renews = placeOf(Date.parse(renew_at));
  return (
    <div className="life">
      <svg
        viewBox="0 0 100 8"
        preserveAspectRatio="none"
        role="img"
        aria-label={`Certificate valid from ${dayOf(not_before)} to ${dayOf(not_after)}, ${Math.round(elapsed)}% elapsed, renews on ${dayOf(renew_at)}`}
      >
        <rect className="rest" width="100" height="8" />
        <rect className={elapsed > renews ? 'over late' : 'over'} width={elapsed} height="8" />
        <path className="renew" d={`M${renews} 0V8`} />
      </svg>
      <p className="scale">
        <span>from {dayOf(not_before)}</span>
        <span>
          renews <Ago at={renew_at} />
        </span>
        <span>until {dayOf(not_after)}</span>
      </p>
      <p className="small">Issued by {issuer}</p>
    </div>
  );
}

function AddDomain({ project }: { project: string }) {
  const { client } = useSignedIn();
  const environments = useEnvironments(project);
  const submit = (data: FormData) =>
    client.domains.create(project, {
      hostname: textField(data, 'hostname') ?? '',
      environment: textField(data, 'environment') ?? '',
    });
  return (
    <section className="panel" aria-labelledby="add">
      <h2 id="add">Add domain</h2>
      <Form label="Add domain" verb="Add domain" submit={submit}>
        <div className="fields">
          <Input name="hostname" label="Hostname" placeholder="shop.example" hint="No wildcards, no port." />
          <Select
            name="environment"
            label="Environment"
            options={oldestFirst(environments.data ?? []).map(({ name }) => [name, name] as const)}
          />
        </div>
      </Form>
    </section>
  );
}
