// Domains, each as a checklist: its DNS record, its certificate, and whether it is served.
import type { ReactNode } from 'react';
import type { Certificate, Domain } from '../../../../src/client/index.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { useList } from '../../use-read.ts';
import { Copyable } from '../display/copy.tsx';
import { Ago, dayOf, useNow } from '../display/time.tsx';
import { ActionButton, ConfirmButton } from '../forms/actions.tsx';
import { DialogButton } from '../forms/dialog.tsx';
import { Form, Input, Select, textField } from '../forms/form.tsx';
import { notify } from '../layout/notices.tsx';
import { Empty, More, Shown } from '../layout/states.tsx';

/** How often to poll until a certificate is issued. */
const waitingMs = 2000;
const isWaiting = ({ state }: Domain) => state === 'pending' || state === 'issuing';

interface DomainsProps {
  project: string;
  /** Without it: of all environments. */
  environment?: string;
  environments: string[];
}

export function Domains({ project, environment, environments }: DomainsProps) {
  const can = useCan();
  const domains = useList<Domain>(
    `domains/${project}/${environment ?? ''}`,
    (client, page) => client.domains.list(project, { ...page, ...(environment && { environment }) }).page(),
    { project, pollMs: (data) => (data.some(isWaiting) ? waitingMs : null) },
  );
  const add = can('domains:write') && environments.length > 0 && (
    <DialogButton title="Add a domain" label="Add domain" className={domains.data?.length === 0 ? 'main' : 'quiet'}>
      {(close) => <AddDomain project={project} environments={environments} onDone={close} />}
    </DialogButton>
  );
  return (
    <>
      {domains.data && domains.data.length > 0 && <div className="row end">{add}</div>}
      <Shown of={domains}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No domains yet." command={`npx sluice domains add shop.example --project ${project}`}>
              <p>
                Every environment already has an address. To use a domain of your own, point its DNS records here and
                add it. Its certificate is issued and renewed by itself.
              </p>
              {add}
            </Empty>
          ) : (
            <ul className="cards wide">
              {items.map((domain) => (
                <DomainCard key={domain.id} project={project} domain={domain} />
              ))}
            </ul>
          )
        }
      </Shown>
      <More of={domains} />
    </>
  );
}

export const EnvironmentDomains = ({ project, environment }: { project: string; environment: string }) => (
  <Domains project={project} environment={environment} environments={[environment]} />
);

type Mark = 'done' | 'now' | 'wrong' | 'open';
const markNames: Record<Mark, string> = { done: 'Done', now: 'In progress', wrong: 'Failed', open: 'To do' };

function Item({ mark, title, children }: { mark: Mark; title: string; children?: ReactNode }) {
  return (
    <li className={mark}>
      <div>
        <strong>
          {title}
          <span className="unseen">: {markNames[mark]}</span>
        </strong>
        {children}
      </div>
    </li>
  );
}

export function DomainCard({ project, domain }: { project: string; domain: Domain }) {
  const { client } = useSignedIn();
  const can = useCan();
  const { id, hostname, certificate, last_error, next_attempt_at, state, proof, txt_record } = domain;
  const isServed = proof !== null;
  /** What to do is said where it is to be done, once. */
  const waitsForRecord = !isServed && (last_error?.includes(txt_record.name) ?? false);
  const checkedAgain = next_attempt_at && (
    <>
      Checked again <Ago at={next_attempt_at} />.
    </>
  );
  return (
    <li className="card domain">
      <div className="title-row">
        <h2>{hostname}</h2>
        <span className="dim">{domain.environment}</span>
      </div>
      <ol className="checklist">
        <Item mark={isServed ? 'done' : 'now'} title={isServed ? 'It is yours' : 'Show that it is yours'}>
          {!isServed && (
            <div className="small">
              <p>
                {waitsForRecord
                  ? `Add this TXT record to the DNS of ${hostname}:`
                  : `Point the DNS records of ${hostname} at this service, or add this TXT record:`}
              </p>
              <dl className="record">
                <dt>Name</dt>
                <dd>
                  <Copyable text={txt_record.name} label="the name of the record" />
                </dd>
                <dt>Value</dt>
                <dd>
                  <Copyable text={txt_record.value} label="the value of the record" />
                </dd>
              </dl>
              <FoundInstead records={txt_record.found} />
              {waitsForRecord && checkedAgain && <p>{checkedAgain}</p>}
            </div>
          )}
        </Item>
        <Item
          mark={
            certificate || state === 'active'
              ? 'done'
              : state === 'failed' && !waitsForRecord
                ? 'wrong'
                : state === 'issuing'
                  ? 'now'
                  : 'open'
          }
          title={
            certificate
              ? 'Certificate'
              : state === 'active'
                ? 'Served without a certificate'
                : state === 'issuing'
                  ? 'The certificate is being issued'
                  : 'Certificate'
          }
        >
          {certificate && <Lifetime certificate={certificate} />}
          {last_error && !waitsForRecord && (
            <p className="small found">
              {last_error} {checkedAgain}
            </p>
          )}
        </Item>
        <Item mark={isServed ? 'done' : 'open'} title={isServed ? 'Served' : 'Not served yet'}>
          {isServed && (
            <p className="small">
              <a href={domain.url} target="_blank" rel="noreferrer">
                {domain.url}
              </a>
            </p>
          )}
        </Item>
      </ol>
      {can('domains:write') && (
        <div className="row tight">
          <ActionButton
            run={() => client.domains.verify(project, id)}
            done={`Checked ${hostname}: its certificate is requested now.`}
          >
            Check now<span className="unseen"> {hostname}</span>
          </ActionButton>
          <ActionButton
            run={() => client.domains.renew(project, id)}
            done={`The certificate of ${hostname} is being renewed.`}
            disabled={!certificate}
          >
            Renew<span className="unseen"> {hostname}</span>
          </ActionButton>
          <ConfirmButton
            title={`Remove ${hostname}?`}
            mustType={hostname}
            about={`${domain.url} no longer answers, and its certificate is deleted. ${domain.environment} itself keeps running.`}
            verb={`Remove ${hostname}`}
            run={() => client.domains.delete(project, id)}
            done={`Removed ${hostname}.`}
          >
            Remove<span className="unseen"> {hostname}</span>
          </ConfirmButton>
        </div>
      )}
    </li>
  );
}

function FoundInstead({ records }: { records: string[] | null }) {
  if (records === null) return null;
  if (records.length === 0) return <p>DNS has no TXT record of this name yet.</p>;
  return (
    <p>
      Found instead:{' '}
      {records.map((text) => (
        <span key={text}>
          <code>{text}</code>{' '}
        </span>
      ))}
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

interface AddDomainProps {
  project: string;
  environments: string[];
  onDone(): void;
}

function AddDomain({ project, environments, onDone }: AddDomainProps) {
  const { client } = useSignedIn();
  const submit = async (data: FormData) => {
    const { hostname } = await client.domains.create(project, {
      hostname: textField(data, 'hostname') ?? '',
      environment: textField(data, 'environment') ?? '',
    });
    notify(`Added ${hostname}.`);
    onDone();
  };
  return (
    <Form label="Add domain" verb="Add domain" submit={submit}>
      <Input
        name="hostname"
        label="Hostname"
        placeholder="shop.example"
        hint="Without a wildcard and without a port."
        required
        pattern="[^\s*:/]+"
        title="must be a name such as shop.example, without a wildcard, a port or a path"
      />
      <Select name="environment" label="Environment" options={environments.map((name) => [name, name] as const)} />
    </Form>
  );
}
