/** The service cannot start for a reason that the operator can fix. Shown as plain lines, without a stack. */
export class StartError extends Error {
  readonly lines: string[];

  constructor(...lines: string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The machine does not let it start at the moment, for example because the disk is full. A later start may succeed. */
export class StartTrouble extends StartError {}

export const wrongSettings = 78;

/** What to print about a start that failed, and the exit code it ends with. */
export function explainStart(error: unknown): { lines: string[]; exitCode: number } {
  if (error instanceof StartTrouble) return { lines: error.lines, exitCode: 1 };
  if (error instanceof StartError) return { lines: error.lines, exitCode: wrongSettings };
  return { lines: [String((error as Error).stack)], exitCode: 1 };
}
