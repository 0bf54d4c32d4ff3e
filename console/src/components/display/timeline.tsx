import type { ReactNode } from 'react';
import { Badge } from './badge.tsx';
import { Ago } from './time.tsx';

export interface Moment {
  key: string;
  at: string;
  state: string;
  text: ReactNode;
}

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hour12: false });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A list of dated entries, in the given order; `isClock`: with the time of day in front, as in a log. */
export function Timeline({ moments, isClock = false }: { moments: Moment[]; isClock?: boolean }) {
  return (
    <ol className={isClock ? 'timeline clock' : 'timeline'}>
      {moments.map(({ key, at, state, text }) => (
        <li key={key}>
          {isClock ? (
            <time dateTime={at} title={exact.format(new Date(at))}>
              {clock.format(new Date(at))}
            </time>
          ) : (
            <Badge state={state} />
          )}
          <span className="what">{text}</span>
          {!isClock && <Ago at={at} />}
        </li>
      ))}
    </ol>
  );
}
