// Short messages about the outcome of an action, which disappear after a while.
import { Cell, useCell } from '../../cell.ts';

interface Notice {
  id: number;
  text: string;
  bad: boolean;
}

const notices = new Cell<Notice[]>([]);
const shownMs = { good: 5000, bad: 12_000 };
let last = 0;

export function notify(text: string, bad = false): void {
  const id = ++last;
  notices.set([...notices.get().slice(-3), { id, text, bad }]);
  setTimeout(() => dismiss(id), bad ? shownMs.bad : shownMs.good);
}

function dismiss(id: number): void {
  notices.set(notices.get().filter((notice) => notice.id !== id));
}

export function Notices() {
  return (
    <div className="notices" aria-live="polite">
      {useCell(notices).map(({ id, text, bad }) => (
        <p key={id} className={bad ? 'notice bad' : 'notice'}>
          {text}
          <button type="button" className="bare" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
