import { type ReactNode, useEffect, useRef } from 'react';

interface ScrolledProps {
  label: string;
  /** Scrolls to the end when content is added. */
  atEnd?: boolean;
  children: ReactNode;
}

/** Preformatted text in a box that scrolls. */
export function Scrolled({ label, atEnd = false, children }: ScrolledProps) {
  const box = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new content moves the end
  useEffect(() => {
    if (atEnd && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [atEnd, children]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section ref={box} className="scrolled" aria-label={label} tabIndex={0}>
      <pre>{children}</pre>
    </section>
  );
}
