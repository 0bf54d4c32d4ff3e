// npm run soak [-- events kills]: deliveries, on SQLite, then on PostgreSQL. By default 100,000 events and ten times kill -9.
// npm run soak -- chaos [--minutes N] [--seed N]: everything at once; see docs/soak.md.
import { startPostgres } from '../test/helpers/postgres.ts';
import { dockerPrograms, installMissing } from './packages.ts';

async function soakDeliveries([events = 100_000, kills = 10]: number[]): Promise<void> {
  const postgres = await startPostgres();
  try {
    for (const [name, url] of [
      ['SQLite', ''],
      ['PostgreSQL', postgres.url],
    ] as const) {
      process.env.SLUICE_TEST_POSTGRES = url;
      // The helpers read where to work when they are loaded, so each database loads its own.
      const { soak } = (await import(`../test/helpers/soak.ts?${name}`)) as typeof import('../test/helpers/soak.ts');
      console.log(name, JSON.stringify(await soak(events, kills, (line) => console.log(`  ${line}`))));
    }
  } finally {
    await postgres.stop();
  }
}

const [part, ...rest] = process.argv.slice(2);
if (part === 'chaos') {
  installMissing(dockerPrograms);
  const { chaos } = await import('../test/soak/chaos.ts');
  process.exitCode = await chaos(rest);
} else {
  await soakDeliveries(process.argv.slice(2).map(Number));
}
