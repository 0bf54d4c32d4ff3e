// The command palette, and the keys that work everywhere. Ctrl-K opens it; what is typed finds pages, projects,
// environments, deployments and domains, by the same search as the lists, and what can be done now: promote a canary, say.
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { Cell, useCell } from '../../cell.ts';
import { textOf } from '../../errors.ts';
import { tagOf } from '../../format.ts';
import { invalidate } from '../../read-cache.ts';
import { navigate, usePath } from '../../router.ts';
import { type Client, signOut, useCan, useSignedIn } from '../../session.ts';
import { nextTheme } from '../../theme.ts';
import { notify } from './notices.tsx';

interface Choice {
  key: string;
  kind: string;
  name: string;
  about?: string;
  run(): void;
}

const isOpen = new Cell(false);
const isHelpOpen = new Cell(false);

export const openPalette = (): void => isOpen.set(true);

const pages = [
  ['p', 'Projects', '/projects', 'projects:read'],
  ['d', 'Deployments', '/deployments', 'deployments:read'],
  ['a', 'Alerts', '/alerts', 'alerts:read'],
  ['n', 'Domains', '/domains', 'domains:read'],
  ['w', 'Webhooks', '/webhooks', 'webhooks:read'],
  ['c', 'Catalogue', '/catalogue', null],
  ['e', 'Events', '/events', 'events:read'],
  ['l', 'Audit log', '/audit', 'audit:read'],
  ['t', 'Tokens', '/tokens', 'tokens:read'],
  ['r', 'Registries', '/registries', 'projects:read'],
  ['s', 'Session', '/session', null],
] as const;

/** Of the environment on the screen. */
const tabs = ['Deployments', 'Revisions', 'Instances', 'Logs', 'Variables', 'Domains', 'Alerts', 'Settings'];

function tabsOf(path: string): Choice[] {
  const [base, , name] = /^\/projects\/([^/]+)\/environments\/([^/]+)/.exec(path) ?? [];
  if (base === undefined) return [];
  return tabs.map((tab) => ({
    key: `tab ${tab}`,
    kind: 'Tab',
    name: `${tab} of ${name}`,
    run: () => navigate(`${base}/${tab.toLowerCase()}`),
  }));
}

const limit = 6;

async function canaries(client: Client): Promise<Choice[]> {
  const { data } = await client.overview.deployments({ state: 'canary', limit }).page();
  return data.map(({ id, project_id, project_name, environment, revision, canary }) => ({
    key: `promote ${id}`,
    kind: 'Action',
    name: `Promote ${revision} of ${project_name} / ${environment}`,
    ...(canary && { about: `${canary.percent} % now` }),
    run: () =>
      void client.deployments
        .promote(project_id, id)
        .then(
          () => notify(`${revision} of ${project_name} / ${environment} was promoted.`),
          (error: Error) => notify(textOf(error), true),
        )
        .finally(invalidate),
  }));
}

async function find(client: Client, can: ReturnType<typeof useCan>, search: string): Promise<Choice[]> {
  const ask = <T,>(isAllowed: boolean, read: () => Promise<{ data: T[] }>): Promise<T[]> =>
    isAllowed ? read().then(({ data }) => data) : Promise.resolve([]);
  const query = { search, limit };
  const [projects, deployments, domains] = await Promise.all([
    ask(can('projects:read'), () => client.overview.projects(query).page()),
    ask(can('deployments:read'), () => client.overview.deployments(query).page()),
    ask(can('domains:read'), () => client.overview.domains(query).page()),
  ]);
  const to = (path: string) => () => navigate(path);
  return [
    ...projects.map(({ id, name, slug }) => ({
      key: id,
      kind: 'Project',
      name,
      about: slug,
      run: to(`/projects/${id}`),
    })),
    ...projects.flatMap(({ id, name: project, environments }) =>
      environments.slice(0, 4).map(({ name, active_revision, image }) => ({
        key: `${id} ${name}`,
        kind: 'Environment',
        name: `${project} / ${name}`,
        ...(active_revision && image && { about: `${active_revision} ${tagOf(image)}` }),
        run: to(`/projects/${id}/environments/${name}`),
      })),
    ),
    ...deployments.map(({ id, project_id, project_name, environment, revision, image, state }) => ({
      key: id,
      kind: 'Deployment',
      name: `${revision} to ${project_name} / ${environment}`,
      about: `${tagOf(image)}, ${state}`,
      run: to(`/projects/${project_id}/deployments/${id}`),
    })),
    ...domains.map(({ id, hostname, project_id, project_name }) => ({
      key: id,
      kind: 'Domain',
      name: hostname,
      about: project_name,
      run: to(`/projects/${project_id}/domains`),
    })),
  ];
}

export function Palette() {
  const open = useCell(isOpen);
  const help = useCell(isHelpOpen);
  useKeys();
  return (
    <>
      {open && <PaletteDialog />}
      {help && <HelpDialog />}
    </>
  );
}

function PaletteDialog() {
  const { client } = useSignedIn();
  const can = useCan();
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const [text, setText] = useState('');
  const [found, setFound] = useState<{ for: string; choices: Choice[] }>({ for: '', choices: [] });
  const [waiting, setWaiting] = useState<Choice[]>([]);
  const [at, setAt] = useState(0);
  const path = usePath();
  const search = text.trim();

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, as it opens
  useEffect(() => {
    dialog.current?.showModal();
    if (can('deployments:read') && can('deployments:write')) canaries(client).then(setWaiting, () => {});
  }, []);

  // biome-ignore lint/correctness/useExhaustiveDependencies: what the token may do does not change while it is open
  useEffect(() => {
    if (search === '') return setFound({ for: '', choices: [] });
    let isOver = false;
    const timer = setTimeout(async () => {
      const choices = await find(client, can, search).catch(() => []);
      if (!isOver) setFound({ for: search, choices });
    }, 120);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [client, search]);

  const close = () => dialog.current?.close();
  const actions: Choice[] = [
    ...tabsOf(path),
    ...pages
      .filter(([, , , scope]) => scope === null || can(scope))
      .map(([key, name, path]) => ({ key: path, kind: 'Page', name, about: `g ${key}`, run: () => navigate(path) })),
    ...(can('projects:write')
      ? [{ key: 'new', kind: 'Action', name: 'New project', run: () => navigate('/projects/new') }]
      : []),
    { key: 'theme', kind: 'Action', name: 'Change the theme', run: nextTheme },
    { key: 'keys', kind: 'Action', name: 'Keyboard shortcuts', about: '?', run: () => isHelpOpen.set(true) },
    { key: 'out', kind: 'Action', name: 'Sign out', run: () => void signOut() },
  ];
  const words = search.toLowerCase().split(/\s+/);
  const matches = ({ name }: Choice) => words.every((word) => name.toLowerCase().includes(word));
  const choices = [
    ...actions.filter(matches),
    ...found.choices,
    // Last, so that Enter after a name goes there and changes nothing.
    ...(found.for === search ? waiting.filter(matches) : []),
  ].slice(0, 30);
  const current = Math.min(at, choices.length - 1);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = (current + step + choices.length) % Math.max(1, choices.length);
      setAt(next);
      document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
    } else if (event.key === 'Enter') {
      event.preventDefault();
      choose(choices[current]);
    }
  };
  return (
    <dialog ref={dialog} className="palette" aria-label="Search or jump" onClose={() => isOpen.set(false)}>
      <input
        type="text"
        role="combobox"
        aria-label="Search projects, deployments, domains and pages"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={choices.length > 0 ? `${id}-${current}` : undefined}
        placeholder="A project, an image, a domain, a page…"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <div id={`${id}-list`} role="listbox" aria-label="Found">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the input chooses
          <div
            key={choice.key}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === current}
            onClick={() => choose(choice)}
            onPointerMove={() => setAt(index)}
          >
            <span className="kind">{choice.kind}</span>
            <span className="name">{choice.name}</span>
            <span className="small">{choice.about}</span>
          </div>
        ))}
      </div>
      {choices.length === 0 && (
        <p className="small nothing" role="status">
          {found.for === search ? `Nothing found for “${search}”.` : 'Searching…'}
        </p>
      )}
    </dialog>
  );
}

function HelpDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const rows: [string, string][] = [
    ['Ctrl K', 'Search or jump'],
    ['/', 'Search this page'],
    ...pages.map(([key, name]): [string, string] => [`g ${key}`, name]),
    ['?', 'This list'],
    ['Esc', 'Close a dialog'],
  ];
  return (
    <dialog ref={dialog} aria-label="Keyboard shortcuts" onClose={() => isHelpOpen.set(false)}>
      <h2>Keyboard shortcuts</h2>
      <dl className="keys">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="row end">
        <button type="button" className="quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

/** A browser leaves the focus in the field of a dialog that was just closed until it draws the next time. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
  !target.closest('dialog:not([open])');

/** How long `g` waits for the key that says where to. */
const sequenceMs = 3000;

function useKeys(): void {
  const can = useCan();
  const allowed = useRef(can);
  allowed.current = can;
  useEffect(() => {
    let goneTo = Number.NEGATIVE_INFINITY;
    const onKey = (event: globalThis.KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        isOpen.set(true);
        return;
      }
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        isTyping(event.target) ||
        document.querySelector('dialog[open]')
      ) {
        return;
      }
      // When the key was pressed, however busy the page was since.
      const isSecond = event.timeStamp - goneTo < sequenceMs;
      goneTo = Number.NEGATIVE_INFINITY;
      if (isSecond) {
        const page = pages.find(([key, , , scope]) => key === event.key && (scope === null || allowed.current(scope)));
        if (page) navigate(page[2]);
      } else if (event.key === 'g') {
        goneTo = event.timeStamp;
      } else if (event.key === '?') {
        isHelpOpen.set(true);
      } else if (event.key === '/') {
        event.preventDefault();
        const field = document.querySelector<HTMLInputElement>('main input[type="search"]');
        if (field) field.focus();
        else isOpen.set(true);
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}
