import { type Account, getAccount } from '../contract/account.ts';
import { type QuotaResource, quotaNames } from '../contract/quota-resources.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import { countUsed } from './account-usage.ts';
import type { Quotas } from './quotas.ts';

interface AccountParts {
  quotas: Quotas;
  /** How many of the account's requests count at this moment. */
  requestsOf(accountId: string): Promise<number>;
}

export function accountRoutes({ quotas, requestsOf }: AccountParts): ServedRoute[] {
  return [
    serve(getAccount, async ({ caller: { accountId } }, db) => {
      const { id, name } = await db
        .selectFrom('account')
        .select(['id', 'name'])
        .where('id', '=', accountId)
        .executeTakeFirstOrThrow();
      const limits: [QuotaResource, number | null][] = [];
      const usage: [QuotaResource, number][] = [];
      for (const resource of quotaNames) {
        const ofPorts = resource === 'ports';
        limits.push([resource, ofPorts ? await quotas.portsOf(db, id) : quotas.limitOf(id, resource)]);
        const isRate = resource === 'requests_per_minute';
        usage.push([resource, isRate ? await requestsOf(id) : await countUsed(db, id, resource)]);
      }
      return {
        body: {
          ...{ id, name },
          quotas: Object.fromEntries(limits) as Account['quotas'],
          usage: Object.fromEntries(usage) as Account['usage'],
        },
      };
    }),
  ];
}
