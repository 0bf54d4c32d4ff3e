// A process of the tenant at its worst: node attack/attacks/attacker-process.ts NAME, with what it attacks in the
// environment. It says when it begins, and ends when it is killed.
import { attackers } from './attackers.ts';

setInterval(() => {}, 60_000);
const attack = await attackers[process.argv[2]!]!(JSON.parse(process.env.WORST!));
process.stdout.write('begins\n');
await attack();
