// Every attack, in the order in which they are carried out: first those that compare with an undisturbed service.
import type { Attack } from './attack.ts';
import { consolePayloads } from './attacks/console-payloads.ts';
import { foreignIds, largestBodies, wrongScopes } from './attacks/every-route.ts';
import { sets } from './attacks/sets.ts';
import { worstTenantAttacks } from './attacks/worst-tenant.ts';

export const attacks: Attack[] = [
  ...worstTenantAttacks,
  largestBodies,
  wrongScopes,
  foreignIds,
  consolePayloads,
  ...sets,
];
