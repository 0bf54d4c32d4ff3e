// What a page shows instead of content: it is coming, it failed, there is none yet. Each says what to do next.
import type { ReactNode } from 'react';
import { SluiceError } from '../../../../src/client/index.ts';
import type { Snapshot } from '../../cached-read.ts';
import { isTransient, textOf } from '../../errors.ts';
import { invalidate } from '../../read-cache.ts';

const remedies: Record<string, string> = {
  network: 'It may be restarting. This page tries again by itself.',
  timeout: 'It may be busy. This page tries again by itself.',
  insufficient_scope: 'Sign in with a token that has this scope, or make one under Tokens.',
  rate_limited: 'This page goes on by itself as soon as the limit allows.',
  region_unavailable: 'What runs instances does not answer. This page tries again by itself.',
};

function remedyOf(error: Error): string {
  const known = error instanceof SluiceError ? remedies[error.code] : undefined;
  if (known) return known;
  if (error instanceof SluiceError && error.status === 404) {
    return 'It may have been deleted, or the token may not see it. Check the address, or go back to the list.';
  }
  return isTransient(error) ? 'This page tries again by itself.' : 'Correct what is named, and try again.';
}

export function Fault({ error, remedy }: { error: Error; remedy?: string }) {
  const { details = [], requestId = null, docs = null } = error instanceof SluiceError ? error : {};
  return (
    <div className="fault" role="alert">
      <p>
        <strong>{textOf(error)}</strong> {remedy ?? remedyOf(error)}
      </p>
      {details.length > 0 && (
        <ul>
          {details.map(({ path, message }) => (
            <li key={path + message}>
              <code>{path}</code> {message}
            </li>
          ))}
        </ul>
      )}
      {(requestId ?? docs) && (
        <p className="small">
          {docs && (
            <a href={docs.replace(/^https?:\/\/[^/]+/, '')} target="_blank" rel="noreferrer">
              What this means
            </a>
          )}{' '}
          {requestId && <code>{requestId}</code>}
        </p>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      <div>{children}</div>
    </div>
  );
}

interface ShownProps<T> {
  of: Snapshot<T>;
  children(data: T): ReactNode;
}

/** The data where there is some, however old; otherwise why not. */
export function Shown<T>({ of: { data, error }, children }: ShownProps<T>) {
  if (data !== undefined) {
    return (
      <>
        {error && !isTransient(error) && <Fault error={error} />}
        {children(data)}
      </>
    );
  }
  if (error === undefined) {
    return (
      <p className="loading" role="status">
        Reading…
      </p>
    );
  }
  return (
    <>
      <Fault error={error} />
      <button type="button" className="quiet" onClick={() => invalidate()}>
        Try again now
      </button>
    </>
  );
}

export function More({ of }: { of: { hasMore: boolean; isReading: boolean; loadMore(): void } }) {
  if (!of.hasMore) return null;
  return (
    <button type="button" className="quiet more" onClick={of.loadMore} disabled={of.isReading}>
      Load more
    </button>
  );
}
