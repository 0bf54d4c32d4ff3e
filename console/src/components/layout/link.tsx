import type { MouseEvent, ReactNode } from 'react';
import { hrefOf, navigate, usePath } from '../../router.ts';

interface LinkProps {
  to: string;
  children: ReactNode;
  className?: string;
  title?: string;
  onNavigate?(): void;
}

export function Link({ to, children, className, title, onNavigate }: LinkProps) {
  const go = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onNavigate?.();
    navigate(to);
  };
  return (
    <a href={hrefOf(to)} className={className} title={title} onClick={go}>
      {children}
    </a>
  );
}

/** A link in a navigation; marked as current at its address and, unless `exact`, below it. */
export function NavLink({ exact = false, ...props }: LinkProps & { exact?: boolean }) {
  const path = usePath();
  const isHere = path === props.to || (!exact && path.startsWith(`${props.to}/`));
  return (
    <li className={isHere ? 'here' : undefined} aria-current={isHere ? 'page' : undefined}>
      <Link {...props} />
    </li>
  );
}
