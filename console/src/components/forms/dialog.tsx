// A form in a dialog, opened by a button. The browser's own dialog keeps the focus inside and closes with Escape.
import { type ReactNode, useEffect, useRef, useState } from 'react';

interface DialogProps {
  title: string;
  onClose(): void;
  children: ReactNode;
}

/** Open as long as it is rendered. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    // The browser would start at the button that closes it.
    dialog.current?.querySelector<HTMLElement>('form :is(input:not([type="hidden"]), select)')?.focus();
  }, []);
  return (
    <dialog ref={dialog} className="wide" aria-label={title} onClose={onClose}>
      <div className="title-row">
        <h2>{title}</h2>
        <button type="button" className="bare" aria-label="Close" onClick={() => dialog.current?.close()}>
          ×
        </button>
      </div>
      {children}
    </dialog>
  );
}

interface DialogButtonProps {
  title: string;
  label: ReactNode;
  className?: string;
  /** Why it cannot be opened now. */
  disabled?: string;
  startsOpen?: boolean;
  children(close: () => void): ReactNode;
}

export function DialogButton({
  title,
  label,
  className = 'main',
  disabled,
  startsOpen = false,
  children,
}: DialogButtonProps) {
  const [isOpen, setOpen] = useState(startsOpen);
  return (
    <>
      <button
        type="button"
        className={className}
        disabled={disabled !== undefined}
        title={disabled}
        onClick={() => setOpen(true)}
      >
        {label}
      </button>
      {isOpen && (
        <Dialog title={title} onClose={() => setOpen(false)}>
          {children(() => setOpen(false))}
        </Dialog>
      )}
    </>
  );
}
