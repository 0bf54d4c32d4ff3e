// SLUICE_QUOTAS: what each account may have. Without I/O.
import { type QuotaResource, quotaNames } from '../contract/quota-resources.ts';
import { invalid } from '../lib/setting-parsers.ts';

/** null: no limit. */
export type Limits = Partial<Record<QuotaResource, number | null>>;

export interface QuotaSetting {
  /** Of every account. */
  all: Limits;
  /** Of single accounts, by their id. */
  accounts: ReadonlyMap<string, Limits>;
}

const most = 10 ** 15;

/** `instances=200,memory_mb=65536,acc_…:instances=none` */
function parseQuotas(value: string): QuotaSetting {
  const all: Limits = {};
  const accounts = new Map<string, Limits>();
  for (const item of value.split(',').map((part) => part.trim())) {
    if (item === '') continue;
    const [, account, name = '', text = ''] = /^(?:(acc_[0-9a-z]{26}):)?(\w+)=(\d{1,16}|none)$/.exec(item) ?? [];
    if (!quotaNames.includes(name as QuotaResource) || Number(text) > most)
      return invalid(`"${item}" must be name=number or name=none; names are ${quotaNames.join(', ')}`);
    const limits = account === undefined ? all : (accounts.get(account) ?? {});
    if (account !== undefined) accounts.set(account, limits);
    limits[name as QuotaResource] = text === 'none' ? null : Number(text);
  }
  return { all, accounts };
}

export const quotaSettings = {
  SLUICE_QUOTAS: {
    default: '',
    about:
      'What each account may have, comma-separated `name=number`, for one account `acc_…:name=number`. `none`: no limit. Names: see `GET /account`.',
    parse: parseQuotas,
  },
};
