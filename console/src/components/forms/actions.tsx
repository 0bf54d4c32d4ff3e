// Buttons that call the service. They cannot be pressed twice and report the outcome; destructive ones ask for
// confirmation first.
import { type ReactNode, useRef, useState } from 'react';
import { textOf } from '../../errors.ts';
import { invalidate } from '../../read-cache.ts';
import { endsSession } from '../../session.ts';
import { notify } from '../layout/notices.tsx';

/** Runs an action, reports a failure, and afterwards invalidates what the page has read. */
function useAction(): [busy: boolean, run: (action: () => Promise<unknown>, done?: string) => Promise<boolean>] {
  const [busy, setBusy] = useState(false);
  const run = async (action: () => Promise<unknown>, done?: string) => {
    setBusy(true);
    try {
      await action();
      if (done) notify(done);
      return true;
    } catch (error) {
      if (!endsSession(error)) notify(textOf(error as Error), true);
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

export function ActionButton({ run: action, done, className = 'quiet', disabled = false, children }: ActionProps) {
  const [busy, run] = useAction();
  return (
    <button type="button" className={className} disabled={busy || disabled} onClick={() => run(action, done)}>
      {children}
    </button>
  );
}

interface ConfirmProps extends ActionProps {
  title: string;
  /** What will happen. */
  about: ReactNode;
  /** The label of the button that confirms. */
  verb: string;
  /** Has to be typed first: for what cannot be undone. */
  mustType?: string;
}

export function ConfirmButton(props: ConfirmProps) {
  const { title, about, verb, mustType, children, run: action, done, className, disabled } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState('');
  const [busy, run] = useAction();
  const confirm = async () => {
    await run(action, done);
    dialog.current?.close();
    setTyped('');
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
        {mustType !== undefined && (
          <label className="field must-type">
            <span>
              Type <b>{mustType}</b> to confirm
            </span>
            <input
              value={typed}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        )}
        <div className="row end">
          {/* biome-ignore lint/a11y/noAutofocus: a confirmation starts with the focus on the safe choice */}
          <button type="button" className="quiet" autoFocus onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button
            type="button"
            className="danger"
            disabled={busy || (mustType !== undefined && typed !== mustType)}
            onClick={confirm}
          >
            {verb}
          </button>
        </div>
      </dialog>
    </>
  );
}
