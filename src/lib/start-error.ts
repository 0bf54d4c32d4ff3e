/** The service cannot start for a reason that the operator can fix. Shown as plain lines, without a stack. */
export class StartError extends Error {
  readonly lines: string[];

  constructor(...lines: string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}
