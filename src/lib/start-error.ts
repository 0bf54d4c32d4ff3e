/** The service cannot start, and the operator can do something about it: shown as plain lines, without a stack. */
export class StartError extends Error {
  readonly lines: string[];

  constructor(...lines: string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}
