// Buttons that do something at the service: they cannot be pressed twice, say how it went, and what cannot be undone
// asks first.
import { type ReactNode, useRef, useState } from 'react';
import { textOf } from '../../errors.ts';
import { invalidate } from '../../read-cache.ts';
import { endsSession } from '../../session.ts';
import { tell } from '../layout/notices.tsx';

/** Runs one thing at a time, tells of failures, and has the page read again afterwards. */
export function useAction(): [busy: boolean, run: (work: () => Promise<unknown>, done?: string) => Promise<boolean>] {
  const [busy, setBusy] = useState(false);
  const run = async (work: () => Promise<unknown>, done?: string) => {
    setBusy(true);
    try {
      await work();
      if (done) tell(done);
      return true;
    } catch (error) {
      if (!endsSession(error)) tell(textOf(error as Error), true);
      return false;
    } finally {
      setBusy(false);
      invalidate();
    }
  };
  return [busy, run];
}

interface ActionProps {
  run(): Promise<unknown>;
  done?: string;
  className?: string;
  disabled?: boolean;
  children: ReactNode;
}

export function ActionButton({ run: work, done, className = 'quiet', disabled = false, children }: ActionProps) {
  const [busy, run] = useAction();
  return (
    <button type="button" className={className} disabled={busy || disabled} onClick={() => run(work, done)}>
      {children}
    </button>
  );
}

interface ConfirmProps extends ActionProps {
  title: string;
  /** What will happen. */
  about: ReactNode;
  /** On the button that does it. */
  verb: string;
}

export function ConfirmButton({ title, about, verb, children, run: work, done, className, disabled }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, run] = useAction();
  const confirm = async () => {
    await run(work, done);
    dialog.current?.close();
  };
  return (
    <>
      <button
        type="button"
        className={className ?? 'quiet'}
        disabled={disabled}
        onClick={() => dialog.current?.showModal()}
      >
        {children}
      </button>
      <dialog ref={dialog} aria-label={title}>
        <h2>{title}</h2>
        <div className="about">{about}</div>
        <div className="row end">
          {/* biome-ignore lint/a11y/noAutofocus: the safe answer has the focus in a dialog that asks */}
          <button type="button" className="quiet" autoFocus onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="button" className="danger" disabled={busy} onClick={confirm}>
            {verb}
          </button>
        </div>
      </dialog>
    </>
  );
}
