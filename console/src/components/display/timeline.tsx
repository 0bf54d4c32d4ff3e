import type { ReactNode } from 'react';
import { Badge } from './badge.tsx';
import { Ago } from './time.tsx';

export interface Moment {
  key: string;
  at: string;
  state: string;
  text: ReactNode;
}

/** A list of dated entries, in the given order. */
export function Timeline({ moments }: { moments: Moment[] }) {
  return (
    <ol className="timeline">
      {moments.map(({ key, at, state, text }) => (
        <li key={key}>
          <Badge state={state} />
          <span className="what">{text}</span>
          <Ago at={at} />
        </li>
      ))}
    </ol>
  );
}
