// What instances of an environment print: searched, filtered, followed. The address says what is shown, so that it can be
// sent to others; the time of a line is a link to it.
import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import type { LogEntry } from '../../../src/client/index.ts';
import { Scrolled } from '../components/display/scrolled.tsx';
import { Check, Input, Select, textField } from '../components/forms/form.tsx';
import { Empty, Shown } from '../components/layout/states.tsx';
import { hrefOf } from '../router.ts';
import { type Client, useSignedIn } from '../session.ts';
import { useRead } from '../use-read.ts';

const shownAtOnce = 300;
const keptWhileFollowing = 2000;
const clock = new Intl.DateTimeFormat(undefined, {
  ...{ month: 'short', day: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false },
});
const streams = [
  ['', 'All'],
  ['stdout', 'stdout'],
  ['stderr', 'stderr'],
  ['system', 'system'],
] as const;

interface Filter {
  search?: string;
  revision?: string;
  instance?: string;
  stream?: LogEntry['stream'];
}

/** The line that a link leads to. */
interface Mark {
  line: string;
  at: string;
}

interface View {
  filter: Filter;
  mark: Mark | null;
}

function viewNow(): View {
  const { line, at, ...filter } = Object.fromEntries(new URLSearchParams(location.search)) as Filter & Partial<Mark>;
  return { filter, mark: line && at ? { line, at } : null };
}

const queryOf = ({ filter, mark }: View): string => {
  const fields = Object.entries({ ...filter, ...mark }).filter(([, value]) => value !== undefined && value !== '');
  return fields.length === 0 ? '' : `?${new URLSearchParams(fields as [string, string][])}`;
};

export function LogsTab({ project: id, name }: { project: string; name: string }) {
  const [view, setView] = useState(viewNow);
  const [isFollowing, setFollowing] = useState(false);
  const show = (next: View) => {
    history.replaceState(null, '', location.pathname + queryOf(next));
    setView(next);
  };
  const here = `/projects/${id}/environments/${name}`;
  return (
    <>
      <Filters filter={view.filter} onChange={(filter) => show({ filter, mark: null })}>
        <Check
          name="follow"
          label="Follow"
          checked={isFollowing}
          onChange={(event) => {
            show({ ...view, mark: null });
            setFollowing(event.currentTarget.checked);
          }}
        />
      </Filters>
      <Entries
        key={queryOf(view)}
        project={id}
        name={name}
        view={view}
        isFollowing={isFollowing}
        path={`${here}/logs`}
      />
    </>
  );
}

interface FiltersProps {
  filter: Filter;
  onChange(filter: Filter): void;
  children: ReactNode;
}

function Filters({ filter, onChange, children }: FiltersProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const names = ['search', 'revision', 'instance', 'stream'] as const;
    const given = names.map((field) => [field, textField(data, field)]).filter(([, value]) => value !== undefined);
    onChange(Object.fromEntries(given));
  };
  return (
    <form className="toolbar" aria-label="Filter" onSubmit={submit}>
      <Input
        name="search"
        label="Search"
        defaultValue={filter.search}
        placeholder="Text in the lines"
        maxLength={200}
      />
      <Input
        name="revision"
        label="Revision"
        defaultValue={filter.revision}
        placeholder="r12"
        pattern="r[1-9][0-9]*"
        title="a revision is r and its number, as in r12"
      />
      <Input name="instance" label="Instance" defaultValue={filter.instance} placeholder="ins_…" />
      <Select name="stream" label="Stream" defaultValue={filter.stream ?? ''} options={streams} />
      <button type="submit">Search</button>
      {children}
    </form>
  );
}

/** The latest, or those around a line; oldest first. */
async function readEntries(client: Client, project: string, name: string, { filter, mark }: View): Promise<LogEntry[]> {
  const list = async (query: object) =>
    (await client.logs.list(project, name, { ...filter, ...query, limit: shownAtOnce / 2 }).page()).data;
  if (!mark) return (await list({})).reverse();
  const [before, from] = await Promise.all([list({ until: mark.at }), list({ since: mark.at, order: 'oldest' })]);
  return [...before.reverse(), ...from];
}

interface EntriesProps {
  project: string;
  name: string;
  view: View;
  isFollowing: boolean;
  path: string;
}

function Entries({ project, name, view, isFollowing, path }: EntriesProps) {
  const { filter, mark } = view;
  const stored = useRead<LogEntry[]>(`logs/${project}/${name}${queryOf(view)}`, (client) =>
    readEntries(client, project, name, view),
  );
  const live = useFollowed(project, name, filter, isFollowing ? stored.data : undefined);
  useEffect(() => {
    if (stored.data && mark) document.getElementById(mark.line)?.scrollIntoView({ block: 'center' });
  }, [stored.data, mark]);
  const entries = [...(stored.data ?? []), ...live].slice(-keptWhileFollowing);
  return (
    <Shown of={stored}>
      {() =>
        entries.length === 0 ? (
          <Empty title="No log lines.">What instances print appears here, and stays when they are gone.</Empty>
        ) : (
          <Scrolled label="Log lines" atEnd={isFollowing}>
            {entries.map((entry) => (
              <Line
                key={entry.id}
                entry={entry}
                isMarked={entry.id === mark?.line}
                href={linkTo(path, filter, entry)}
              />
            ))}
          </Scrolled>
        )
      }
    </Shown>
  );
}

const linkTo = (path: string, filter: Filter, { id, at }: LogEntry): string =>
  hrefOf(path + queryOf({ filter, mark: { line: id, at } }));

function Line({ entry, isMarked, href }: { entry: LogEntry; isMarked: boolean; href: string }) {
  const { id, at, instance, revision, level, message, text } = entry;
  const shown = level !== null && message !== null ? message : text;
  return (
    <span
      id={id}
      className={`log ${level ?? ''} ${isMarked ? 'marked' : ''}`}
      title={message === null ? undefined : text}
    >
      <a href={href}>
        <time dateTime={at}>{clock.format(new Date(at))}</time>
      </a>{' '}
      <i title={instance}>
        {revision} {instance.slice(-6)}
      </i>{' '}
      {level && <b>{level}</b>} {shown}
      {'\n'}
    </span>
  );
}

/** What comes after those that are shown; nothing until they are there. */
function useFollowed(project: string, name: string, filter: Filter, shown: LogEntry[] | undefined): LogEntry[] {
  const { client } = useSignedIn();
  const [live, setLive] = useState<LogEntry[]>([]);
  useEffect(() => {
    if (!shown) return;
    const ended = new AbortController();
    const known = new Set(shown.map(({ id }) => id));
    const since = shown.at(-1)?.at ?? new Date().toISOString();
    const follow = async () => {
      const stream = client.logs.stream(project, name, { ...filter, since }, { signal: ended.signal });
      for await (const entry of stream) {
        if (known.has(entry.id)) continue;
        known.add(entry.id);
        setLive((before) => [...before, entry].slice(-keptWhileFollowing));
      }
    };
    follow().catch(() => {}); // the page says what is wrong where it reads
    return () => {
      ended.abort();
      setLive([]);
    };
  }, [client, project, name, filter, shown]);
  return live;
}
