// npm run attack [-- --short] [--on=sqlite|postgres] [--size=0.5] [words of names …]: attacks a service on loopback, and prints what was
// tried and what held. --size: how much of each quota the hostile tenant fills, 1 unless given. What is measured is measured twice: on SQLite with the built-in router, and on PostgreSQL with HAProxy.
import { installMissing } from '../scripts/packages.ts';
import { startPostgres } from '../test/helpers/postgres.ts';
import { type Attack, carryOut, type Row, tableOf } from './attack.ts';
import { attacks } from './attacks.ts';
import { type Installation, smallInstallation, startTarget } from './target.ts';

// What it has started ends with it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const short = process.argv.includes('--short');
const option = (name: string) => process.argv.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
const only = option('--on');
const size = Number(option('--size') ?? 1);
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const chosen = attacks
  .filter(({ name }) => words.every((word) => name.includes(word)))
  .filter(({ isLong, isMeasured }) => !(short && (isLong || isMeasured)));
const rows: Row[] = [];

/** One after another, on a service that is started for them. */
async function attackOne(group: Attack[], installation: Installation): Promise<void> {
  const target = await startTarget(installation, size);
  try {
    for (const attack of group) {
      const row = await carryOut(attack, target, short);
      rows.push({ ...row, name: attack.isMeasured ? `${row.name} (${installation.name})` : row.name });
      for (const line of tableOf([rows.at(-1)!]).slice(1)) console.error(line);
    }
  } finally {
    await target.stop();
  }
}

const isAlone = ({ isMeasured }: Attack) => isMeasured === true;
const alone = chosen.filter(isAlone);
if (only !== 'postgres') for (const attack of alone) await attackOne([attack], smallInstallation);
if (only !== 'sqlite' && alone.length > 0) {
  installMissing(['haproxy']);
  const postgres = await startPostgres();
  const large: Installation = { name: 'PostgreSQL, HAProxy', postgresUrl: postgres.url, plane: 'haproxy' };
  try {
    for (const attack of alone) await attackOne([attack], large);
  } finally {
    await postgres.stop();
  }
}
const others = chosen.filter((attack) => !isAlone(attack));
if (others.length > 0) await attackOne(others, smallInstallation);
console.log();
for (const line of tableOf(rows)) console.log(line);
process.exitCode = rows.length > 0 && rows.every(({ broken }) => broken.length === 0) ? 0 : 1;
