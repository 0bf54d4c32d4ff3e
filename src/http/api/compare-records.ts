// What differs between a record before and after a request, field by field, for the audit log. No I/O.

export interface FieldChange {
  field: string;
  /** As JSON; null: there was none. */
  from: string | null;
  to: string | null;
}

export const maxChanges = 200;
const maxText = 500;
/** Change with every request, or follow from the others. */
const ignored = new Set(['updated_at', 'pending_changes', 'health', 'traffic']);

export function compareRecords(before: unknown, after: unknown): FieldChange[] {
  const [was, is] = [flatten(before), flatten(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((field) => !ignored.has(field.split('.', 1)[0]!) && was.get(field) !== is.get(field))
    .map((field) => ({ field, from: was.get(field) ?? null, to: is.get(field) ?? null }));
}

/** A list is one value. */
function flatten(value: unknown, path = '', into = new Map<string, string>()): Map<string, string> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const [name, part] of Object.entries(value)) flatten(part, path === '' ? name : `${path}.${name}`, into);
  } else if (value !== null && value !== undefined) {
    into.set(path, JSON.stringify(value).slice(0, maxText).toWellFormed());
  }
  return into;
}
