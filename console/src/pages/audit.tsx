// Who changed what, when, and what it was before.
import { Fragment, useState } from 'react';
import type { AuditEntry, Token } from '../../../src/client/index.ts';
import { Copyable } from '../components/display/copy.tsx';
import { ShortIds } from '../components/display/id.tsx';
import { Ago } from '../components/display/time.tsx';
import { Link } from '../components/layout/link.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { SearchBox, useTyped } from '../components/layout/search-box.tsx';
import { Empty, More, NothingFound, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { useCan } from '../session.ts';
import { useList, useSteady } from '../use-read.ts';

const kinds = [
  ['', 'Everything'],
  ['deployments', 'Deployments'],
  ['environments', 'Environments'],
  ['projects', 'Projects'],
  ['domains', 'Domains'],
  ['alert-rules', 'Alert rules'],
  ['webhooks', 'Webhooks'],
  ['registries', 'Registries'],
  ['tokens', 'Tokens'],
  ['sessions', 'Sessions'],
] as const;

const periods = [
  ['', 'Any time'],
  ['1', 'Last hour'],
  ['24', 'Last day'],
  ['168', 'Last week'],
  ['720', 'Last 30 days'],
] as const;

const verbs: Record<string, string> = {
  create: 'created',
  update: 'changed',
  delete: 'deleted',
  revoke: 'revoked',
  end: 'ended',
  rollback: 'rolled back',
  redeploy: 'redeployed',
  promote: 'promoted',
  pause: 'paused',
  resume: 'resumed',
  abort: 'aborted',
  verify: 'checked',
  renew: 'renewed',
};

/** `deployments.promote` → "promoted a deployment". */
function sentenceOf(action: string): string {
  const [kind = '', verb = ''] = action.split('.');
  const thing = kind.replaceAll('-', ' ').replace(/ies$/, 'y').replace(/s$/, '');
  return `${verbs[verb] ?? verb.replaceAll('-', ' ')} ${/^[aeiou]/.test(thing) ? 'an' : 'a'} ${thing}`;
}

export function AuditPage() {
  const can = useCan();
  const [action, setAction] = useState('');
  const [token, setToken] = useState('');
  const [hours, setHours] = useState('');
  const typed = useTyped();
  const { search } = typed;
  const entries = useSteady(
    useList<AuditEntry>(
      `audit/${action}/${token}/${hours}/${search}`,
      (client, page) =>
        client.auditLog
          .list({
            ...page,
            ...(action && { action }),
            ...(token && { by: token }),
            ...(hours && {
              since: new Date(Math.floor(Date.now() / 60_000) * 60_000 - Number(hours) * 3_600_000).toISOString(),
            }),
            ...(search && { search }),
          })
          .page(),
      { project: '*' },
    ),
  );
  const isFiltered = action !== '' || token !== '' || hours !== '';
  const choice = (
    label: string,
    value: string,
    set: (value: string) => void,
    options: readonly (readonly [string, string])[],
  ) => (
    <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
      {options.map(([each, text]) => (
        <option key={each} value={each}>
          {text}
        </option>
      ))}
    </select>
  );
  return (
    <>
      <PageHead
        title="Audit log"
        actions={
          <>
            <SearchBox
              typed={typed}
              label="Search by action, path, token or project"
              isEmpty={!isFiltered && entries.data?.length === 0}
            />
            {can('tokens:read') && <TokenChoice value={token} onChange={setToken} />}
            {choice('What', action, setAction, kinds)}
            {choice('When', hours, setHours, periods)}
          </>
        }
      />
      <Shown of={entries}>
        {(items) =>
          items.length === 0 ? (
            search === '' ? (
              <Empty title={isFiltered ? 'Nothing found.' : 'Nothing has been changed yet.'}>
                Every change is recorded here, whether it was made here, on the command line or through the API: by
                whom, when, and what was there before.
              </Empty>
            ) : (
              <NothingFound of={entries} />
            )
          ) : (
            <Table
              label="Audit log"
              isFlowing
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'When', cell: ({ created_at }) => <Ago at={created_at} /> },
                {
                  name: 'Who',
                  cell: ({ token_name, token_id, address }) => (
                    <span className="by" title={`${token_id} from ${address}`}>
                      {token_name ?? <ShortIds text={token_id} />}
                    </span>
                  ),
                },
                { name: 'What', cell: (entry) => <What entry={entry} /> },
                {
                  name: 'Change',
                  cell: ({ changes }) => (changes.length === 0 ? null : <Changes changes={changes} />),
                },
                {
                  name: 'Request',
                  cell: ({ request_id }) => (
                    <details className="request">
                      <summary>id</summary>
                      <Copyable text={request_id} label="the request id" />
                    </details>
                  ),
                },
              ]}
            />
          )
        }
      </Shown>
      <More of={entries} />
    </>
  );
}

function TokenChoice({ value, onChange }: { value: string; onChange(value: string): void }) {
  const tokens = useList<Token>('tokens', (client, page) => client.tokens.list(page).page(), { project: '*' });
  return (
    <select aria-label="Who" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      <option value="">Everybody</option>
      {(tokens.data ?? []).map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}

function What({ entry: { action, resource, project_id, project_name } }: { entry: AuditEntry }) {
  const [, environment] = /\/environments\/([^/]+)/.exec(resource) ?? [];
  const deployment = /\/deployments\/(dpl_\w+)/.exec(resource)?.[1];
  const at = project_id && project_name ? `/projects/${project_id}` : null;
  return (
    <span title={`${action} ${resource}`}>
      {sentenceOf(action)}{' '}
      {at && (
        <>
          {action.startsWith('projects.') ? '' : 'in '}
          <Link
            to={deployment ? `${at}/deployments/${deployment}` : environment ? `${at}/environments/${environment}` : at}
          >
            {environment ? `${project_name} / ${environment}` : project_name}
          </Link>
        </>
      )}
    </span>
  );
}

/** A value of a record, which comes as JSON, as people write it. */
function readable(json: string): string {
  const parsed = parsedOr(json, json);
  if (Array.isArray(parsed)) return parsed.length === 0 ? 'none' : parsed.join(', ');
  return typeof parsed === 'boolean' ? (parsed ? 'yes' : 'no') : String(parsed);
}

/** Long values are cut, and then are no JSON. */
function parsedOr(json: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return otherwise;
  }
}

/** The names in a list of them, such as those of variables. */
function namesIn(json: string): string[] | null {
  const parsed = parsedOr(json, null);
  return Array.isArray(parsed) && parsed.every((item) => typeof item === 'string') ? parsed : null;
}

function Change({ from, to }: Pick<AuditEntry['changes'][number], 'from' | 'to'>) {
  if (from === null && to === null) return 'has another value';
  if (from === null) return <code>{readable(to!)}</code>;
  const [before, after] = [namesIn(from), to === null ? null : namesIn(to)];
  if (before && after && before.length + after.length > 0) return <Names before={before} after={after} />;
  return (
    <>
      <del>{readable(from)}</del>
      {to !== null && (
        <>
          {' → '}
          <code>{readable(to)}</code>
        </>
      )}
    </>
  );
}

/** What came and what went: of a long list the same names would be said twice. */
function Names({ before, after }: { before: string[]; after: string[] }) {
  const [gone, come] = [before.filter((name) => !after.includes(name)), after.filter((name) => !before.includes(name))];
  if (gone.length + come.length === 0) return 'in another order';
  return [...gone.map((name) => `− ${name}`), ...come.map((name) => `+ ${name}`)].map((text) => (
    <Fragment key={text}>
      <code>{text}</code>{' '}
    </Fragment>
  ));
}

const shownAtOnce = 6;

function Changes({ changes }: { changes: AuditEntry['changes'] }) {
  return (
    <ul className="audit-changes">
      {changes.slice(0, shownAtOnce).map(({ field, from, to }) => (
        <li key={field}>
          <span className="dim">{field}</span> <Change from={from} to={to} />
        </li>
      ))}
      {changes.length > shownAtOnce && <li className="small">and {changes.length - shownAtOnce} more</li>}
    </ul>
  );
}
