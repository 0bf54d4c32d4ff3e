import { Type } from 'typebox';
import { declareGet, Id, Nullable, none, type Of, Shape, Text } from './declare.ts';
import { type QuotaResource, quotaNames, quotaResources } from './quota-resources.ts';

const Quota = (description: string) =>
  Nullable(
    Type.Integer({
      format: 'int64',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: `${description} null: no limit.`,
    }),
  );
const Used = (description: string) =>
  Type.Integer({ format: 'int64', minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

const perResource = <T>(of: (description: string) => T): Record<QuotaResource, T> =>
  Object.fromEntries(quotaNames.map((name) => [name, of(quotaResources[name])])) as Record<QuotaResource, T>;

export const Account = Shape(
  {
    id: Id('acc', 'The account.'),
    name: Text(100, 'Its name.'),
    quotas: Shape(perResource(Quota)),
    usage: Shape(perResource(Used)),
  },
  { $id: 'Account' },
);
export type Account = Of<typeof Account>;

export const getAccount = declareGet({
  name: 'account.get',
  path: '/account',
  tag: 'tokens',
  summary: 'Get the account of this token: what it may have, and what it has',
  scope: null,
  params: none,
  response: Account,
  errors: [],
});
