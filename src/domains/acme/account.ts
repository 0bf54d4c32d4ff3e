// The account at the certificate authority: one for all processes, its key sealed in the database.
import { generateKeyPairSync } from 'node:crypto';
import type { Client } from 'acme-client';
import type { Db } from '../../db/database.ts';
import type { Seal } from '../../lib/seal.ts';
import { accountKeyContext } from '../key-context.ts';
import type { AcmeTransport } from './transport.ts';

export interface AccountParts {
  db: Db;
  seal: Seal;
  directory: string;
  email: string | null;
  transport: AcmeTransport;
}

/** Of the library's own parts, those that have to be other than they are. */
interface Inner {
  http: {
    request: AcmeTransport['request'];
    maxBadNonceRetries: number;
    getDirectory(): Promise<Record<string, unknown>>;
  };
  api: { createAccount(data: { termsOfServiceAgreed: true; contact?: string[] }): Promise<unknown> };
}

export interface AcmeSession {
  client: Client;
  directory(): Promise<Record<string, unknown>>;
}

const maxBadNonceRetries = 20;

/** A new key for a certificate or an account. */
export const newKeyPem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;

export class AcmeAccount {
  readonly #parts: AccountParts;
  #session: Promise<AcmeSession> | null = null;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Registers the account if there is none yet. */
  session(): Promise<AcmeSession> {
    this.#session ??= this.#open().catch((error) => {
      this.#session = null;
      throw error;
    });
    return this.#session;
  }

  /** The authority does not know the account any more: the next session registers it anew. */
  async forget(url: string): Promise<void> {
    this.#session = null;
    const { db, directory } = this.#parts;
    await db
      .updateTable('acme_account')
      .set({ url: null })
      .where('directory', '=', directory)
      .where('url', '=', url)
      .execute();
  }

  async #open(): Promise<AcmeSession> {
    const { db, seal, directory, email, transport } = this.#parts;
    // Some twenty megabytes that most starts never need.
    const { default: acme } = await import('acme-client');
    const row = await this.#find();
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: seal.open(row.key_sealed, accountKeyContext(directory)),
      ...(row.url !== null && { accountUrl: row.url }),
    });
    const { http, api } = client as unknown as Inner;
    http.request = transport.request;
    http.maxBadNonceRetries = maxBadNonceRetries;
    if (row.url === null) {
      // Not the client's own: of an account that is there already, it asks for a change of nothing, which is refused.
      await api.createAccount({ termsOfServiceAgreed: true, ...(email !== null && { contact: [`mailto:${email}`] }) });
      const url = client.getAccountUrl();
      await db.updateTable('acme_account').set({ url }).where('directory', '=', directory).execute();
    }
    return { client, directory: () => http.getDirectory() };
  }

  /** Of several processes that make a key at once, the first to write it wins. */
  async #find() {
    const { db, seal, directory } = this.#parts;
    await db
      .insertInto('acme_account')
      .values({ directory, url: null, key_sealed: seal.seal(newKeyPem(), accountKeyContext(directory)) })
      .onConflict((conflict) => conflict.column('directory').doNothing())
      .execute();
    return db.selectFrom('acme_account').selectAll().where('directory', '=', directory).executeTakeFirstOrThrow();
  }
}
