// What a page shows in place of content: loading, an error, nothing yet. Each says what to do next.
import type { ReactNode } from 'react';
import { SluiceError } from '../../../../src/client/index.ts';
import type { Snapshot } from '../../cached-read.ts';
import { isTransient, textOf } from '../../errors.ts';
import { invalidate } from '../../read-cache.ts';
import { Copyable } from '../display/copy.tsx';

const remedies: Record<string, string> = {
  network: 'It may be restarting. This page retries automatically.',
  timeout: 'It may be busy. This page retries automatically.',
  insufficient_scope: 'Sign in with a token that has this scope, or create one under Tokens.',
  rate_limited: 'Updates resume as soon as the limit allows.',
  region_unavailable: 'The region is not responding. This page retries automatically.',
};

function remedyOf(error: Error): string {
  const known = error instanceof SluiceError ? remedies[error.code] : undefined;
  if (known) return known;
  if (error instanceof SluiceError && error.status === 404) {
    return 'It may have been deleted, or your token may not have access to it. Check the address, or go back to the list.';
  }
  return isTransient(error) ? 'This page retries automatically.' : 'Fix the problem and try again.';
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
              About this error
            </a>
          )}{' '}
          {requestId && <Copyable text={requestId} label="the request id" />}
        </p>
      )}
    </div>
  );
}

interface EmptyProps {
  title: string;
  /** What would fill it, on the command line. */
  command?: string | undefined;
  children: ReactNode;
}

export function Empty({ title, command, children }: EmptyProps) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      <div>{children}</div>
      {command && <Copyable text={command} label="the command" />}
    </div>
  );
}

interface ShownProps<T> {
  of: Snapshot<T>;
  /** Stands where the data will be, as large as it. */
  skeleton?: ReactNode;
  children(data: T): ReactNode;
}

/** The data, even if a later read failed; without data, the error or that it is loading. */
export function Shown<T>({ of: { data, error }, skeleton, children }: ShownProps<T>) {
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
      <div className="loading" role="status">
        <span className="unseen">Loading…</span>
        {skeleton ?? <SkeletonRows count={4} />}
      </div>
    );
  }
  return (
    <>
      <Fault error={error} />
      <button type="button" className="quiet" onClick={() => invalidate()}>
        Retry now
      </button>
    </>
  );
}

export function SkeletonRows({ count }: { count: number }) {
  return (
    <div className="skeleton-rows" aria-hidden="true">
      {Array.from({ length: count }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <span key={index} />
      ))}
    </div>
  );
}

interface Pages {
  data: unknown[] | undefined;
  hasMore: boolean;
  isReading: boolean;
  loadMore(): void;
}

export function More({ of }: { of: Pages }) {
  if (!of.hasMore) return null;
  return (
    <button type="button" className="quiet more" onClick={of.loadMore} disabled={of.isReading}>
      {of.data?.length === 0 ? 'Search further back' : 'Load more'}
    </button>
  );
}

/** A request searches some thousand items, so there may be more to search. */
export function NothingFound({ of }: { of: Pages }) {
  return (
    <Empty title={of.hasMore ? 'Nothing found among the newest.' : 'Nothing found.'}>
      Each word has to be in one of the names shown.
    </Empty>
  );
}
