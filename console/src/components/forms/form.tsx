// Forms whose fields have the names of the API, so that an error about a field is shown at the field. The input stays in
// the fields until the service has accepted it.
import { createContext, type FormEvent, type ReactNode, useContext, useId, useState } from 'react';
import { SluiceError } from '../../../../src/client/index.ts';
import { textOf } from '../../errors.ts';
import { parseSeconds, plural, secondsText } from '../../format.ts';
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

/** What is wrong with a field, in words, before anything is sent. */
function mistakeIn(field: HTMLInputElement): string | null {
  const { validity } = field;
  const own = field.dataset.unit === 'time' && field.value.trim() !== '' ? mistakeInTime(field) : null;
  if (own !== null) return own;
  if (validity.valid) return null;
  if (validity.valueMissing) return 'is needed';
  if (validity.badInput) return 'must be a number';
  if (validity.rangeUnderflow) return `must be ${field.min} or more`;
  if (validity.rangeOverflow) return `must be ${field.max} or less`;
  if (validity.stepMismatch)
    return field.step === '' || field.step === '1' ? 'must be a whole number' : `must be a multiple of ${field.step}`;
  return field.title || field.validationMessage;
}

function mistakeInTime({ value, dataset }: HTMLInputElement): string | null {
  const seconds = parseSeconds(value);
  if (seconds === null) return 'must be a time, such as 30 s, 5 min or 2 h';
  if (seconds < Number(dataset.min)) return `must be ${secondsText(Number(dataset.min))} or more`;
  if (seconds > Number(dataset.max)) return `must be ${secondsText(Number(dataset.max))} or less`;
  return null;
}

function mistakesIn(form: HTMLFormElement): Record<string, string> {
  const fields = [...form.elements].filter((each): each is HTMLInputElement => each instanceof HTMLInputElement);
  const found = fields.map((field) => [field.name, mistakeIn(field)] as const).filter(([name, text]) => name && text);
  return Object.fromEntries(found as [string, string][]);
}

/** Marks the fields that differ from what the service has. */
function markChanged(form: HTMLFormElement): number {
  let count = 0;
  for (const field of form.querySelectorAll<HTMLElement>('.field, .check')) {
    const input = field.querySelector<HTMLInputElement | HTMLSelectElement>('input, select');
    const isChanged =
      input instanceof HTMLSelectElement
        ? [...input.options].some((option) => option.selected !== option.defaultSelected) &&
          input.dataset.initial !== input.value
        : input?.type === 'checkbox'
          ? input.checked !== input.defaultChecked
          : input !== null && input.value !== input.defaultValue;
    field.toggleAttribute('data-changed', isChanged);
    if (isChanged) count++;
  }
  return count;
}

interface FormProps {
  submit(data: FormData): Promise<unknown>;
  /** Keeps the input in the fields after the service has accepted it. */
  keep?: boolean;
  /** Marks changed fields; the button waits for a change. */
  marksChanges?: boolean;
  verb: string;
  label: string;
  children: ReactNode;
}

export function Form({ submit, keep = false, marksChanges = false, verb, label, children }: FormProps) {
  const [changed, setChanged] = useState(0);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(none);
  const onSubmit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const mistakes = mistakesIn(form);
    setProblem({ byField: mistakes, rest: null });
    const wrong = Object.keys(mistakes)[0];
    if (wrong !== undefined) return form.querySelector<HTMLElement>(`[name="${CSS.escape(wrong)}"]`)?.focus();
    setBusy(true);
    setProblem(none);
    try {
      await submit(new FormData(form));
      if (!keep) form.reset();
      setChanged(0);
      for (const each of form.querySelectorAll('[data-changed]')) each.removeAttribute('data-changed');
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
    <form
      aria-label={label}
      onSubmit={onSubmit}
      onInput={marksChanges ? (event) => setChanged(markChanged(event.currentTarget)) : undefined}
      noValidate
    >
      <ProblemContext value={problem}>{children}</ProblemContext>
      {problem.rest && <Fault error={problem.rest} remedy="Your input is kept." />}
      <div className="row">
        <button type="submit" className="main" disabled={busy || (marksChanges && changed === 0)}>
          {verb}
        </button>
        {changed > 0 && <span className="small">{plural(changed, 'field')} changed</span>}
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  label: string;
  hint?: ReactNode;
  /** Shown behind the input. */
  unit?: string;
  /** Takes the whole row. */
  isWide?: boolean;
  children(props: { id: string; name: string; 'aria-describedby'?: string; 'aria-invalid'?: true }): ReactNode;
}

export function Field({ name, label, hint, unit, isWide = false, children }: FieldProps) {
  const id = useId();
  const fault = useContext(ProblemContext).byField[name];
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(' ');
  return (
    <div className={isWide ? 'field wide' : 'field'}>
      <label htmlFor={id}>{label}</label>
      <span className={unit ? 'with-unit' : undefined}>
        {children({
          id,
          name,
          ...(described && { 'aria-describedby': described }),
          ...(fault !== undefined && { 'aria-invalid': true as const }),
        })}
        {unit && <span className="unit">{unit}</span>}
      </span>
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

type InputProps = Omit<FieldProps, 'children'> &
  React.InputHTMLAttributes<HTMLInputElement> & { [data: `data-${string}`]: unknown };

export function Input({ name, label, hint, unit, isWide = false, ...rest }: InputProps) {
  return (
    <Field name={name} label={label} hint={hint} isWide={isWide} {...(unit !== undefined && { unit })}>
      {(props) => <input autoComplete="off" spellCheck={false} {...rest} {...props} />}
    </Field>
  );
}

interface TimeInputProps {
  name: string;
  label: string;
  hint?: ReactNode;
  seconds: number;
  min: number;
  max: number;
}

/** A time as people write it: `90 s`, `5 min`, `1 h 30 min`. */
export function TimeInput({ seconds, min, max, ...rest }: TimeInputProps) {
  return (
    <Input {...rest} data-unit="time" data-min={min} data-max={max} defaultValue={secondsText(seconds)} required />
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

/** Of a `TimeInput`. */
export function secondsField(data: FormData, name: string): number | undefined {
  return parseSeconds(textField(data, name) ?? '') ?? undefined;
}

/** Of a field in percent, as the fraction that the API takes. */
export function fractionField(data: FormData, name: string): number | undefined {
  const value = numberField(data, name);
  return value === undefined ? undefined : Math.round(value * 1e4) / 1e6;
}

export function numberField(data: FormData, name: string): number | undefined {
  const text = textField(data, name);
  return text === undefined ? undefined : Number(text);
}
