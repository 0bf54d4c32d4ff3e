import { notify } from '../layout/notices.tsx';

/** A text with a button that copies it; what is copied is what is shown. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      notify(`Copied ${label}.`);
    } catch {
      notify('This page may not write to the clipboard. Select the text and copy it.', true);
    }
  };
  return (
    <span className="copyable">
      <code>{text}</code>
      <button type="button" className="bare" aria-label={`Copy ${label}`} onClick={copy}>
        Copy
      </button>
    </span>
  );
}
