// Every route with a token that has every scope but the needed one: refused, before anything is looked up.
import { routes } from '../../src/contract/api.ts';
import { type Scope, scopes } from '../../src/contract/scopes.ts';
import { call } from '../../test/helpers/app.ts';
import type { Attack } from '../attack.ts';
import { tokenOf } from '../target.ts';

const narrow = scopes.filter((scope): scope is Exclude<Scope, '*'> => scope !== '*');

export const wrongScopes: Attack = {
  name: 'every scope on every route that needs another',
  async run({ url, attacker }) {
    const broken: string[] = [];
    let tried = 0;
    for (const scope of narrow) {
      const token = await tokenOf(url, attacker, { scopes: [scope] });
      for (const { method, path, scope: needed } of routes) {
        if (needed === null || needed === 'public' || needed === scope) continue;
        const at = path.replaceAll(/\{\w+\}/g, 'x');
        const { status } = await call(url, method, `/v1${at}`, { token, ...(method !== 'GET' && { body: {} }) });
        tried++;
        if (status !== 403) broken.push(`${scope} on ${method} ${path}: ${status}`);
      }
    }
    return { tried, broken };
  },
};
