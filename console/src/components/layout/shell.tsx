// The frame of every page: navigation, the state of the connection, notices, the command palette.
import { type ReactNode, useState } from 'react';
import type { Overview } from '../../../../src/client/index.ts';
import { useCell } from '../../cell.ts';
import { live } from '../../live.ts';
import { useCan, useSignedIn } from '../../session.ts';
import { nextTheme, theme } from '../../theme.ts';
import { useRead } from '../../use-read.ts';
import { reachable, waitUntil } from '../../wire.ts';
import { duration, useNow } from '../display/time.tsx';
import { Link, NavLink } from './link.tsx';
import { Notices } from './notices.tsx';
import { openPalette, Palette } from './palette.tsx';

export function Logo() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path className="mark-water" d="M3 12c3-2.6 6-2.6 9 0M3 20c3-2.6 6-2.6 9 0" />
      <path className="mark-gate" d="M16 4v24" />
      <path className="mark-flow" d="M20 9h9M20 16h9M20 23h5" />
    </svg>
  );
}

export function ThemeButton() {
  const now = useCell(theme);
  return (
    <button type="button" className="bare theme" onClick={nextTheme} aria-label={`Theme: ${now}. Change`}>
      <svg viewBox="0 0 20 20" aria-hidden="true">
        {now === 'dark' ? (
          <path d="M16 12.5A7 7 0 0 1 7.5 4a7 7 0 1 0 8.5 8.5Z" />
        ) : now === 'light' ? (
          <path d="M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M16 4l-1.4 1.4M5.4 14.6 4 16" />
        ) : (
          <path d="M10 2.5a7.5 7.5 0 1 0 0 15Z M10 2.5a7.5 7.5 0 0 1 0 15" />
        )}
      </svg>
      <span>Theme: {now}</span>
    </button>
  );
}

const connectionLabels = { connecting: 'Connecting', open: 'Live', lost: 'Reconnecting', off: 'Not live' };

function Connection() {
  const state = useCell(live);
  const title =
    state === 'off'
      ? 'Pages do not update automatically: the token lacks events:read, or too many clients are connected.'
      : undefined;
  return (
    <span className={`connection ${state}`} role="status" title={title}>
      {connectionLabels[state]}
    </span>
  );
}

function Banner() {
  const isLost = useCell(live) === 'lost';
  const isReachable = useCell(reachable);
  const until = useCell(waitUntil);
  const now = useNow();
  if (isLost || !isReachable) {
    return (
      <p className="banner" role="status">
        The service is not responding. Reconnecting… The data shown may be out of date; your input is kept.
      </p>
    );
  }
  if (until > now) {
    return (
      <p className="banner calm" role="status">
        Rate limit reached: updates resume in {duration(Math.ceil((until - now) / 1000))}.
      </p>
    );
  }
  return null;
}

/** Counts over all projects; read by the navigation and the list of projects. */
export const useOverview = () =>
  useRead<Overview>('overview', (client) => client.overview.get(), {
    project: '*',
    minGapMs: () => 1000,
    pollMs: () => 15_000,
  });

function AlertCount() {
  const firing = useOverview().data?.firing_alerts ?? 0;
  if (firing === 0) return null;
  return (
    <span className="count">
      {firing}
      <span className="unseen"> firing</span>
    </span>
  );
}

export function Shell({ children }: { children: ReactNode }) {
  const { me } = useSignedIn();
  const can = useCan();
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  const place = (to: string, name: ReactNode) => (
    <NavLink to={to} onNavigate={close}>
      {name}
    </NavLink>
  );
  return (
    <div className="frame">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="side">
        <div className="side-top">
          <Link to="/projects" className="brand" onNavigate={close}>
            <Logo />
            Sluice
          </Link>
          <button
            type="button"
            className="bare menu"
            aria-expanded={isOpen}
            aria-controls="nav"
            onClick={() => setOpen(!isOpen)}
          >
            Menu
          </button>
        </div>
        <button type="button" className="jump" onClick={openPalette}>
          Search or jump… <kbd>Ctrl K</kbd>
        </button>
        <nav id="nav" className={isOpen ? 'places open' : 'places'} aria-label="Main">
          <ul>
            {can('projects:read') && place('/projects', 'Projects')}
            {can('deployments:read') && place('/deployments', 'Deployments')}
            {can('alerts:read') && place('/alerts', <>Alerts {can('projects:read') && <AlertCount />}</>)}
            {can('domains:read') && place('/domains', 'Domains')}
            {can('webhooks:read') && place('/webhooks', 'Webhooks')}
            {place('/catalogue', 'Catalogue')}
            {can('events:read') && place('/events', 'Events')}
            {can('audit:read') && place('/audit', 'Audit log')}
            {can('tokens:read') && place('/tokens', 'Tokens')}
            {can('projects:read') && place('/registries', 'Registries')}
            {can('projects:read') && place('/regions', 'Regions')}
            {place('/account', 'Account')}
          </ul>
          <ul className="foot">
            {place('/session', me.name)}
            <li className="row">
              <ThemeButton />
              <Connection />
            </li>
          </ul>
        </nav>
      </header>
      <div className="content">
        <Banner />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Notices />
      <Palette />
    </div>
  );
}
