// One line of the doctor's report.
export type Level = 'ok' | 'note' | 'problem';

export interface Finding {
  level: Level;
  what: string;
  found: string;
  /** What to do about it. */
  todo?: string;
}

export const ok = (what: string, found: string): Finding => ({ level: 'ok', what, found });
export const note = (what: string, found: string, todo: string): Finding => ({ level: 'note', what, found, todo });
export const problem = (what: string, found: string, todo: string): Finding => ({
  level: 'problem',
  what,
  found,
  todo,
});
