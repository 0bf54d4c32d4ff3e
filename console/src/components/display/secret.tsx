import { useRef, useState } from 'react';

/** A secret that is shown only once. If the page may not write to the clipboard, the text is selected for copying. */
export function SecretOnce({ label, secret, about }: { label: string; secret: string; about: string }) {
  const field = useRef<HTMLInputElement>(null);
  const [copied, setCopied] = useState('');
  const copy = async () => {
    field.current?.select();
    try {
      await navigator.clipboard.writeText(secret);
      setCopied('Copied.');
    } catch {
      setCopied('Press Ctrl+C to copy.');
    }
  };
  return (
    <div className="secret" role="status">
      <label>
        <strong>{label}</strong>
        <input ref={field} readOnly value={secret} onFocus={(event) => event.currentTarget.select()} />
      </label>
      <button type="button" className="main" onClick={copy}>
        Copy
      </button>
      <p className="hint">
        {about} {copied}
      </p>
    </div>
  );
}
