// Every attack, in the order in which they are carried out: first those that compare with an undisturbed service.
import type { Attack } from './attack.ts';
import { foreignIds } from './attacks/foreign-ids.ts';
import { largestBodies } from './attacks/largest-bodies.ts';
import { wrongScopes } from './attacks/scopes.ts';
import { worstTenantAttacks } from './attacks/worst-tenant.ts';

export const attacks: Attack[] = [...worstTenantAttacks, largestBodies, wrongScopes, foreignIds];
