import { type ReactNode, useEffect, useRef } from 'react';
import { hasNavigated, usePath } from '../../router.ts';
import { Link, NavLink } from './link.tsx';

interface PageHeadProps {
  title: string;
  /** Beside the title: a count, a state. */
  about?: ReactNode;
  /** Breadcrumbs. */
  trail?: [to: string, name: string][];
  actions?: ReactNode;
}

/** Focuses the title after a navigation, so that keyboards and screen readers start there. */
export function PageHead({ title, about, trail = [], actions }: PageHeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  useEffect(() => {
    if (hasNavigated()) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header className="page-head">
      {trail.length > 0 && (
        <nav aria-label="Breadcrumb">
          <ol className="trail">
            {trail.map(([to, name]) => (
              <li key={to}>
                <Link to={to}>{name}</Link>
              </li>
            ))}
          </ol>
        </nav>
      )}
      <div className="title-row">
        <div className="title">
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {typeof about === 'string' ? <span className="dim">{about}</span> : about}
        </div>
        {actions && <div className="row">{actions}</div>}
      </div>
    </header>
  );
}

/** On a narrow screen they scroll sideways: the current one comes into view. */
export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  const nav = useRef<HTMLElement>(null);
  const path = usePath();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page has another current tab
  useEffect(() => {
    const tabs = nav.current!;
    const show = () => {
      const here = tabs.querySelector<HTMLElement>('.here');
      if (here) tabs.scrollLeft = here.offsetLeft - (tabs.clientWidth - here.offsetWidth) / 2;
    };
    show();
    // Also when a phone is turned.
    const resized = new ResizeObserver(show);
    resized.observe(tabs);
    return () => resized.disconnect();
  }, [path]);
  return (
    <nav className="tabs" aria-label={label} ref={nav}>
      <ul>{children}</ul>
    </nav>
  );
}

export function ProjectTabs({ id }: { id: string }) {
  const base = `/projects/${id}`;
  return (
    <Tabs label="Project">
      <NavLink to={base} exact>
        Overview
      </NavLink>
      <NavLink to={`${base}/deployments`}>Deployments</NavLink>
      <NavLink to={`${base}/alerts`}>Alerts</NavLink>
      <NavLink to={`${base}/domains`}>Domains</NavLink>
      <NavLink to={`${base}/settings`}>Settings</NavLink>
    </Tabs>
  );
}
