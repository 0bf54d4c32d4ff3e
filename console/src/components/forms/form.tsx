// Forms whose fields have the names of the API, so that an error about a field is shown at the field. The input stays in
// the fields until the service has accepted it.
import { createContext, type FormEvent, type ReactNode, useContext, useId, useState } from 'react';
import { SluiceError } from '../../../../src/client/index.ts';
import { textOf } from '../../errors.ts';
import { invalidate } from '../../read-cache.ts';
import { endsSession } from '../../session.ts';
import { Fault } from '../layout/states.tsx';

/** The field that an error code is about, for errors without details. */
const fieldOf: Record<string, string> = {
  slug_taken: 'slug',
  environment_exists: 'name',
  alert_rule_exists: 'name',
  domain_taken: 'hostname',
  environment_unknown: 'environment',
  webhook_url_not_allowed: 'url',
};

interface Problem {
  byField: Record<string, string>;
  /** The error, if it is not only about fields of this form. */
  rest: Error | null;
}

const none: Problem = { byField: {}, rest: null };
const ProblemContext = createContext<Problem>(none);

/** `body.canary.steps[1]` → the field `canary.steps`. */
function problemOf(error: Error, form: HTMLFormElement): Problem {
  if (!(error instanceof SluiceError)) return { byField: {}, rest: error };
  const names = [...form.elements].map((element) => (element as HTMLInputElement).name).filter(Boolean);
  const byField: Record<string, string> = {};
  const direct = fieldOf[error.code];
  if (direct !== undefined && names.includes(direct)) return { byField: { [direct]: textOf(error) }, rest: null };
  let isComplete = error.details.length > 0;
  for (const { path, message } of error.details) {
    const name = names.find(
      (each) => path === `body.${each}` || path.startsWith(`body.${each}[`) || path.startsWith(`body.${each}.`),
    );
    if (name === undefined) isComplete = false;
    else byField[name] = byField[name] ? `${byField[name]}; ${message}` : message;
  }
  return { byField, rest: isComplete ? null : error };
}

interface FormProps {
  submit(data: FormData): Promise<unknown>;
  /** Keeps the input in the fields after the service has accepted it. */
  keep?: boolean;
  verb: string;
  label: string;
  children: ReactNode;
}

export function Form({ submit, keep = false, verb, label, children }: FormProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(none);
  const onSubmit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    setBusy(true);
    setProblem(none);
    try {
      await submit(new FormData(form));
      if (!keep) form.reset();
    } catch (error) {
      if (endsSession(error)) return;
      const found = problemOf(error as Error, form);
      setProblem(found);
      const first = Object.keys(found.byField)[0];
      if (first) form.querySelector<HTMLElement>(`[name="${CSS.escape(first)}"]`)?.focus();
    } finally {
      setBusy(false);
      invalidate();
    }
  };
  return (
    <form aria-label={label} onSubmit={onSubmit} noValidate>
      <ProblemContext value={problem}>{children}</ProblemContext>
      {problem.rest && <Fault error={problem.rest} remedy="Your input is kept." />}
      <div className="row">
        <button type="submit" className="main" disabled={busy}>
          {verb}
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  label: string;
  hint?: ReactNode;
  children(props: { id: string; name: string; 'aria-describedby'?: string; 'aria-invalid'?: true }): ReactNode;
}

export function Field({ name, label, hint, children }: FieldProps) {
  const id = useId();
  const fault = useContext(ProblemContext).byField[name];
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ');
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        name,
        ...(described && { 'aria-describedby': described }),
        ...(fault !== undefined && { 'aria-invalid': true as const }),
      })}
      {hint && (
        <p id={`${id}-hint`} className="hint">
          {hint}
        </p>
      )}
      {fault && (
        <p id={`${id}-fault`} className="field-fault" role="alert">
          {fault}
        </p>
      )}
    </div>
  );
}

type InputProps = Omit<FieldProps, 'children'> & React.InputHTMLAttributes<HTMLInputElement>;

export function Input({ name, label, hint, ...rest }: InputProps) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(props) => <input autoComplete="off" spellCheck={false} {...rest} {...props} />}
    </Field>
  );
}

type SelectProps = Omit<FieldProps, 'children'> &
  React.SelectHTMLAttributes<HTMLSelectElement> & { options: readonly (readonly [value: string, text: string])[] };

export function Select({ name, label, hint, options, ...rest }: SelectProps) {
  return (
    <Field name={name} label={label} hint={hint}>
      {(props) => (
        <select {...rest} {...props}>
          {options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Check({
  name,
  label,
  ...rest
}: { name: string; label: ReactNode } & React.InputHTMLAttributes<HTMLInputElement>) {
  return (
    <label className="check">
      <input type="checkbox" name={name} {...rest} />
      <span>{label}</span>
    </label>
  );
}

/** The value of a text field; undefined if it is empty. */
export function textField(data: FormData, name: string): string | undefined {
  const value = String(data.get(name) ?? '').trim();
  return value === '' ? undefined : value;
}

export function numberField(data: FormData, name: string): number | undefined {
  const text = textField(data, name);
  return text === undefined ? undefined : Number(text);
}
