// From an error to what a person is told, and the exit code. An error that nothing here knows keeps its stack.
import type { SluiceError } from '../../client/error.ts';
import { StartError } from '../../lib/start-error.ts';
import { CliError, exit, UsageError } from '../io.ts';
import type { FoundService } from '../reach/found-service.ts';
import { clean } from '../terminal/width.ts';
import type { Explained } from './command.ts';

/** By name: the class itself is loaded only by commands that call a service. */
const isSluiceError = (error: unknown): error is SluiceError => (error as Error | null)?.name === 'SluiceError';

export function explain(error: unknown, name: string, found: FoundService | null): Explained {
  const { code, lines } = reasonOf(error, name, found);
  return { code, lines: lines.map((line, index) => `${index === 0 ? 'sluice: ' : '  '}${line}`) };
}

function reasonOf(error: unknown, name: string, found: FoundService | null): Explained {
  if (error instanceof StartError) return { code: exit.settings, lines: error.lines };
  if (error instanceof UsageError) return { code: exit.usage, lines: [error.message, `See: sluice ${name} --help`] };
  if (error instanceof CliError) return { code: error.exitCode, lines: [error.message, ...error.advice] };
  if (isSluiceError(error)) return explainAnswer(error, found);
  const { code, stack, message } = error as NodeJS.ErrnoException;
  if ((error as Error).name === 'DatabaseUnreachable') return { code: exit.unreachable, lines: [message] };
  if (error instanceof TypeError && message.includes('of the path cannot be'))
    return { code: exit.usage, lines: ['An id cannot be empty or dots.', `See: sluice ${name} --help`] };
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return { code: exit.failed, lines: [message] };
  return { code: exit.failed, lines: [stack ?? String(error)] };
}

function exitCodeOf({ code, status }: SluiceError): number {
  if (code === 'aborted') return exit.interrupted;
  if (status === 401 || status === 403) return exit.notAllowed;
  if (status === 404) return exit.notFound;
  if (['network', 'timeout', 'unexpected_answer', 'shutting_down', 'database_unavailable'].includes(code))
    return exit.unreachable;
  return exit.failed;
}

function explainAnswer(error: SluiceError, found: FoundService | null): Explained {
  const code = exitCodeOf(error);
  const asked = found ? [`Asked ${found.url}, found by ${found.from}.`] : [];
  const where = code === exit.notAllowed || code === exit.unreachable ? asked : [];
  const lines = [clean(error.message), ...adviceFor(error), ...where];
  if (error.requestId !== null)
    lines.push(`Request ${error.requestId} (${error.code}); see ${error.docs ?? 'the log'}`);
  return { code, lines };
}

/** What to do, as commands of this command line; the page behind `docs` says it for the API. */
function adviceFor({ code, status, retryAfterS, details }: SluiceError): string[] {
  if (code === 'network') return ['Is it running? Start one with: sluice serve; look closer with: sluice doctor'];
  if (status === 401) return ['Log in with a valid token: sluice login'];
  if (code === 'deployment_in_progress') {
    const id = details.map(({ message }) => /dpl_[0-9a-z]{26}/.exec(message)?.[0]).find(Boolean);
    return [`Watch it: sluice deployments watch${id ? ` ${id}` : ''}; end it: sluice abort`];
  }
  if (code === 'environment_locked') return ['Unlock it when the reason is gone: sluice environments unlock'];
  if (code === 'environment_unknown') return ['See: sluice environments'];
  if (code === 'revision_not_eligible') return ['See which are: sluice revisions'];
  if (code === 'region_unavailable') return ['Nothing was done. Is its engine running? sluice doctor'];
  if (retryAfterS !== null) return [`Try again in ${retryAfterS} s.`];
  return [];
}
