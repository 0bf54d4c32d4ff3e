// How a line of the log looks on a terminal.

const colours: Record<string, string> = { warn: '\x1b[33m', error: '\x1b[31m', fatal: '\x1b[31m', debug: '\x1b[2m' };

export function prettyLine({ time, level, msg, err, ...rest }: Record<string, unknown>): string {
  const fields = Object.entries(rest)
    .map(([name, value]) => `\x1b[2m${name}=\x1b[0m${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
  const clock = String(time).slice(11, 19);
  const colour = colours[String(level)] ?? '';
  const stack = err && typeof err === 'object' && 'stack' in err ? `\n${err.stack}` : '';
  return `\x1b[2m${clock}\x1b[0m ${colour}${msg ?? ''}\x1b[0m ${fields}${stack}`.trimEnd();
}
