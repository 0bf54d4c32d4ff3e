import { randomBytes } from 'node:crypto';
import { Memo } from '../../lib/bounded-cache.ts';
import type { Seal } from '../../lib/seal.ts';
import { secretPrefix } from '../sending/signature.ts';

const secretBytes = 32;

export const newSecret = (): string => secretPrefix + randomBytes(secretBytes).toString('base64');

const contextOf = (webhookId: string): string => `webhook ${webhookId}`;

export const sealSecret = (seal: Seal, webhookId: string, secret: string): string =>
  seal.seal(secret, contextOf(webhookId));

const maxOpened = 10_000;

/** Opens sealed secrets and keeps them: the same few sign thousands of deliveries. */
export class OpenedSecrets {
  readonly #seal: Seal;
  readonly #opened = new Memo<string>(maxOpened);

  constructor(seal: Seal) {
    this.#seal = seal;
  }

  open(webhookId: string, sealed: string): string {
    return this.#opened.get(sealed, () => this.#seal.open(sealed, contextOf(webhookId)));
  }
}
