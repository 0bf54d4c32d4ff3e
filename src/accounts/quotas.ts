// What an account may have of what all accounts share. Nothing else keeps one account from taking all of it.

import { sql } from 'kysely';
import { quotaExceeded } from '../contract/errors.ts';
import type { QuotaResource } from '../contract/quota-resources.ts';
import type { Db } from '../db/database.ts';
import { lockRow } from '../db/guarded.ts';
import { prepared } from '../db/prepared.ts';
import { countUsed } from './account-usage.ts';
import type { Limits, QuotaSetting } from './quota-settings.ts';

const mebibyte = 1024 * 1024;

/** In force where SLUICE_QUOTAS says nothing. */
const defaults = {
  environments: 10_000,
  instances: null,
  memory_mb: null,
  webhooks: 1000,
  domains: 10_000,
  tokens: 1000,
  variables_bytes: 64 * mebibyte,
  log_bytes: 10_000 * mebibyte,
} satisfies Limits;

interface QuotaParts {
  setting: QuotaSetting;
  /** 0: any number. */
  projectsPerAccount: number;
  /** How many ports there are for the instances of all accounts. */
  ports: number;
  requestsPerMinute: number;
}

type Bounded = 'projects' | 'environments';
const isBounded = (resource: QuotaResource): resource is Bounded =>
  resource === 'projects' || resource === 'environments';

/** Of accounts whose count is known. */
const maxCounted = 10_000;

/** Takes one more of what is known to be left; gives no row where that is not known, or nothing is left. */
const takeOne = prepared((db) =>
  db
    .updateTable('account_usage')
    .set({ used: sql<number>`used + 1` })
    .where('account_id', '=', '')
    .where('resource', '=', 'projects')
    .where('used', '>=', 0)
    .where('used', '<', 0)
    .returning('used'),
);

export class Quotas {
  /**
   * What an account had when this process counted. Counting takes time that grows with what is there, so it is done once, and
   * again when the quota could be reached; in between, each creation in any process adds one to what is stored, and a deletion
   * takes nothing off. What is stored is good if it is no less than what was counted here.
   */
  readonly #counted = new Map<string, number>();
  readonly #setting: QuotaSetting;
  readonly #defaults: Record<Exclude<QuotaResource, 'ports'>, number | null>;
  readonly #portShare: number;

  constructor({ setting, projectsPerAccount, ports, requestsPerMinute }: QuotaParts) {
    this.#setting = setting;
    this.#defaults = { ...defaults, projects: projectsPerAccount || null, requests_per_minute: requestsPerMinute };
    this.#portShare = Math.floor(ports / 2);
  }

  /** null: no limit. */
  limitOf(accountId: string, resource: Exclude<QuotaResource, 'ports'>): number | null {
    const set = this.#set(accountId, resource);
    return set === undefined ? this.#defaults[resource] : set;
  }

  /** Where nothing is set, an account alone may have all ports, and one of several half of them. */
  async portsOf(db: Db, accountId: string): Promise<number | null> {
    const set = this.#set(accountId, 'ports');
    if (set !== undefined) return set;
    const two = await db.selectFrom('account').select('id').limit(2).execute();
    return two.length > 1 ? this.#portShare : null;
  }

  #set(accountId: string, resource: QuotaResource): number | null | undefined {
    const own = this.#setting.accounts.get(accountId)?.[resource];
    return own === undefined ? this.#setting.all[resource] : own;
  }

  /**
   * Carries out `write`, after which the account must not have more than it may, unless it has no more than before: what
   * was there when a quota was lowered stays. Throws, so that the transaction is undone.
   */
  async within<T>(
    tx: Db,
    accountId: string,
    resources: readonly Exclude<QuotaResource, 'ports'>[],
    write: () => Promise<T>,
  ): Promise<T> {
    const all = resources.flatMap((resource) => {
      const limit = this.limitOf(accountId, resource);
      return limit === null ? [] : [{ resource, limit }];
    });
    if (all.length === 0) return write();
    // Two transactions that count at once would both find room.
    await lockRow(tx, 'account', accountId);
    const limited: typeof all = [];
    for (const one of all) if (!(await this.#takesOne(tx, accountId, one))) limited.push(one);
    const before = new Map<QuotaResource, number>();
    for (const { resource } of limited) before.set(resource, await countUsed(tx, accountId, resource));
    const written = await write();
    for (const { resource, limit } of limited) {
      const used = await countUsed(tx, accountId, resource);
      if (used > limit && used > before.get(resource)!) throw exceeded(resource, limit, used);
      if (isBounded(resource)) await this.#noteCounted(tx, accountId, resource, used);
    }
    return written;
  }

  /** Every write within a quota of projects or environments creates one. */
  async #takesOne(tx: Db, accountId: string, { resource, limit }: { resource: QuotaResource; limit: number }) {
    const counted = isBounded(resource) ? this.#counted.get(`${accountId} ${resource}`) : undefined;
    return counted !== undefined && (await takeOne(tx, accountId, resource, counted, limit)).length === 1;
  }

  async #noteCounted(tx: Db, account_id: string, resource: Bounded, used: number): Promise<void> {
    if (this.#counted.size >= maxCounted) this.#counted.clear();
    this.#counted.set(`${account_id} ${resource}`, used);
    await tx
      .insertInto('account_usage')
      .values({ account_id, resource, used })
      .onConflict((conflict) => conflict.columns(['account_id', 'resource']).doUpdateSet({ used }))
      .execute();
  }
}

const names: Partial<Record<QuotaResource, string>> = {
  memory_mb: 'MB of memory for its instances',
  variables_bytes: 'bytes of variables, those of earlier revisions included',
  tokens: 'tokens that are not revoked',
};

const exceeded = (resource: QuotaResource, limit: number, would: number) =>
  quotaExceeded(
    `An account has at most ${limit} ${names[resource] ?? resource}; it would have ${would}.`,
    resource,
    limit,
  );
