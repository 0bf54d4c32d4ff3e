// Statements that cost the server more to plan than to run: it keeps their plans, once for each connection, and makes new
// ones when the statistics of their tables change. Behind a PgBouncer in transaction mode it keeps none.

const names = new Map<string, string>();

/** For a statement whose text is always the same. Gives back the text. */
export function keepPlan(text: string): string {
  if (!names.has(text)) names.set(text, `sluice_kept_${names.size}`);
  return text;
}

/** Under which name its plan is kept; undefined: it is not. */
export const keptName = (text: string): string | undefined => names.get(text);
