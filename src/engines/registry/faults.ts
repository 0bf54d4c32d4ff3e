// What a registry's refusal means.
import { type ImageReference, nameOf } from '../../contract/image-reference.ts';
import { EngineError } from '../engine.ts';
import type { Answer } from './http.ts';

const maxSaid = 200;

/** The registry's own words (`errors` of the distribution specification); empty where it is something else that answered. */
export function saidBy({ body }: Pick<Answer, 'body'>): string {
  try {
    const { errors } = JSON.parse(body.toString('utf8')) as { errors?: { code?: unknown; message?: unknown }[] };
    const words = (errors ?? []).map(({ code, message }) => String(message || code || ''));
    return words.filter(Boolean).join('; ').slice(0, maxSaid);
  } catch {
    return '';
  }
}

/** Of an answer that is not the one hoped for. */
export function refusal(reference: ImageReference, origin: string, answer: Answer, hasLogin: boolean): EngineError {
  const image = `${nameOf(reference)}${reference.digest ? `@${reference.digest}` : `:${reference.tag}`}`;
  const said = saidBy(answer);
  const words = said === '' ? '' : ` (${said})`;
  const { host } = new URL(origin);
  switch (true) {
    case answer.status === 401 || answer.status === 403: {
      const advice = hasLogin
        ? 'the login for this registry may not pull it'
        : 'add a login for this registry (POST /v1/registries), or check the name';
      return new EngineError('image_denied', `${host} does not give out ${image}${words}: ${advice}`);
    }
    case answer.status === 404:
      return new EngineError('image_not_found', `${host} has no ${image}${words}`);
    case answer.status === 429:
      return new EngineError('registry_rate_limited', `${host} accepts no more requests for now${words}`);
    default:
      return new EngineError('registry_failing', `${host} answers with status ${answer.status}${words}`);
  }
}
