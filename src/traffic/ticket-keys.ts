// The key that TLS session tickets are encrypted with. All routers of an installation share it through the database, so
// that a session resumes at any of them, and after any restart. A new one replaces it every day: what a leaked key
// exposes ends there.
import { randomBytes } from 'node:crypto';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Seal } from '../lib/seal.ts';

const name = 'ticket_key';
const context = 'tls ticket key';
const lastsMs = 24 * 3600_000;

interface TicketKey {
  key: string;
  createdAt: number;
}

export class TicketKeys {
  readonly #parts: { db: Db; seal: Seal; clock: Clock };

  constructor(parts: { db: Db; seal: Seal; clock: Clock }) {
    this.#parts = parts;
  }

  async current(): Promise<Buffer> {
    const { db, seal, clock } = this.#parts;
    const nowMs = clock.now();
    const row = await this.#read();
    const known = row && (JSON.parse(seal.open(row.value, context)) as TicketKey);
    if (known && Math.abs(nowMs - known.createdAt) < lastsMs) return Buffer.from(known.key, 'base64');
    const fresh: TicketKey = { key: randomBytes(48).toString('base64'), createdAt: nowMs };
    const value = seal.seal(JSON.stringify(fresh), context);
    // Of several processes that replace it at once, one succeeds, and all use what that one wrote.
    if (row)
      await db.updateTable('meta').set({ value }).where('name', '=', name).where('value', '=', row.value).execute();
    else
      await db
        .insertInto('meta')
        .values({ name, value })
        .onConflict((c) => c.column('name').doNothing())
        .execute();
    const written = JSON.parse(seal.open((await this.#read())!.value, context)) as TicketKey;
    return Buffer.from(written.key, 'base64');
  }

  #read(): Promise<{ value: string } | undefined> {
    return this.#parts.db.selectFrom('meta').select('value').where('name', '=', name).executeTakeFirst();
  }
}
