/** The service cannot start for a reason that the operator can fix. Shown as plain lines, without a stack. */
export class StartError extends Error {
  readonly lines: string[];

  constructor(...lines: string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

const wrongSettings = 78;

/** What to print about a start that failed, and the exit code it ends with. */
export function explainStart(error: unknown): { lines: string[]; exitCode: number } {
  if (error instanceof StartError) return { lines: error.lines, exitCode: wrongSettings };
  const { code, message, stack } = error as NodeJS.ErrnoException;
  const isPort = message.startsWith('listen ') && ['EADDRINUSE', 'EACCES', 'EADDRNOTAVAIL'].includes(String(code));
  const ports = 'Is another one running? Ports: SLUICE_PORT, SLUICE_ROUTER_PORT, SLUICE_ROUTER_TLS_PORT.';
  return { lines: [isPort ? `${message}. ${ports}` : String(stack)], exitCode: 1 };
}
