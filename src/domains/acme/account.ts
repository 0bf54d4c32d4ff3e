// The account at the certificate authority. All processes share it; its key is sealed in the database.
import { generateKeyPairSync } from 'node:crypto';
import type { Client } from 'acme-client';
import type { Db } from '../../db/database.ts';
import type { Seal } from '../../lib/seal.ts';
import { accountKeyContext } from '../key-context.ts';
import type { AcmeTransport } from './transport.ts';

interface AccountParts {
  db: Db;
  seal: Seal;
  directory: string;
  email: string | null;
  transport: AcmeTransport;
}

/** Internals of acme-client that we replace or call directly. */
interface Internals {
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

/** A new private key for a certificate or an account. */
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

  /** For an account that the authority no longer knows: the next session registers it again. */
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
    // Loaded here because it takes some twenty megabytes that most installations never need.
    const { default: acme } = await import('acme-client');
    const row = await this.#find();
    const client = new acme.Client({
      directoryUrl: directory,
      accountKey: seal.open(row.key_sealed, accountKeyContext(directory)),
      ...(row.url !== null && { accountUrl: row.url }),
    });
    const { http, api } = client as unknown as Internals;
    http.request = transport.request;
    http.maxBadNonceRetries = maxBadNonceRetries;
    if (row.url === null) {
      // Not client.createAccount(): if the account exists, that sends an empty update, which authorities refuse.
      await api.createAccount({ termsOfServiceAgreed: true, ...(email !== null && { contact: [`mailto:${email}`] }) });
      const url = client.getAccountUrl();
      await db.updateTable('acme_account').set({ url }).where('directory', '=', directory).execute();
    }
    return { client, directory: () => http.getDirectory() };
  }

  /** If several processes create a key at once, the first to write it wins. */
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
