// What the console makes of a failed request.
import { SluiceError } from '../../src/client/index.ts';

/** The same request may succeed later: the service is away, busy, or asks us to slow down. */
export function isTransient(error: Error): boolean {
  return !(error instanceof SluiceError) || error.status === 0 || error.status === 429 || error.status >= 500;
}

/** The service's sentence, without the list of causes that the client appends. */
export function textOf(error: Error): string {
  if (!(error instanceof SluiceError)) return error.message;
  if (error.code === 'network' || error.code === 'timeout') return 'The service is not responding.';
  const causes = error.details.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return causes === '' ? error.message : error.message.replace(` (${causes})`, '');
}
