// The supervisor's few lines, in the form of the service's log. It does without the library behind that: it has to start
// fast, and to be small for as long as the service runs.
import { prettyLine } from '../lib/pretty-log-line.ts';

const levels = ['debug', 'info', 'warn', 'error', 'silent'];

export type SupervisorLog = Record<
  'info' | 'warn' | 'error',
  (fields: Record<string, unknown>, message: string) => void
>;

export function createSupervisorLog(least: string, format: 'json' | 'pretty'): SupervisorLog {
  const at = (level: string) => (fields: Record<string, unknown>, msg: string) => {
    if (levels.indexOf(level) < levels.indexOf(least)) return;
    const line = { level, time: new Date().toISOString(), ...fields, msg };
    process.stdout.write(`${format === 'json' ? JSON.stringify(line) : prettyLine(line)}\n`);
  };
  return { info: at('info'), warn: at('warn'), error: at('error') };
}
