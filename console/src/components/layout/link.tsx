import type { MouseEvent, ReactNode } from 'react';
import { hrefOf, navigate, usePath } from '../../router.ts';

interface LinkProps {
  to: string;
  children: ReactNode;
  className?: string;
  onGo?(): void;
}

export function Link({ to, children, className, onGo }: LinkProps) {
  const go = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onGo?.();
    navigate(to);
  };
  return (
    <a href={hrefOf(to)} className={className} onClick={go}>
      {children}
    </a>
  );
}

/** One of several places; marked while the address is at it or, unless `exact`, below it. */
export function NavLink({ exact = false, ...props }: LinkProps & { exact?: boolean }) {
  const path = usePath();
  const isHere = path === props.to || (!exact && path.startsWith(`${props.to}/`));
  return (
    <li className={isHere ? 'here' : undefined} aria-current={isHere ? 'page' : undefined}>
      <Link {...props} />
    </li>
  );
}
