// npm run soak [-- events kills]: deliveries, on SQLite, then on PostgreSQL. By default 100,000 events and ten times kill -9.
// npm run soak -- planes: no failure of the control plane or the database fails a visitor's request, at full size.
// npm run soak -- haproxy [requests]: HAProxy under load over reloads, share changes and certificate swaps; 100,000 by default.
// npm run soak -- faults [words]: every fault of a service's own under load; see docs/soak.md.
// npm run soak -- year [--months N] [--deployments N]: a year of an ordinary team on a moved clock; see docs/soak.md.
// npm run soak -- canaries [--rollouts N]: real rollouts of canaries that are equal and worse, on both data planes.
// npm run soak -- chaos [--minutes N] [--seed N] [--plane P] [--database D]: everything at once; see docs/soak.md.
import { spawnSync } from 'node:child_process';
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

/** The tests of `npm test`, each with as much as it is to show. */
function soakPlanes(): number {
  const files = [
    'engines/docker-small-disk',
    'supervisor/rollout-killed',
    'supervisor/supervisor',
    'supervisor/visitors',
    'supervisor/without-database',
    'traffic/control-killed',
    'traffic/database-away',
    'traffic/router-cut-off',
  ];
  const env = {
    ...process.env,
    SLUICE_TEST_KILLS: '10',
    SLUICE_TEST_REQUESTS: '100000',
    SLUICE_TEST_RELOADS: '5',
    SLUICE_TEST_HELD: '10',
    SLUICE_TEST_AWAY_S: '60',
    SLUICE_TEST_DEPLOYMENTS: '50',
  };
  const args = ['--test', '--test-concurrency=1', ...files.map((file) => `test/${file}.test.ts`)];
  return spawnSync(process.execPath, args, { env, stdio: 'inherit' }).status ?? 1;
}

const [part, ...rest] = process.argv.slice(2);
if (part === 'chaos') {
  installMissing([...dockerPrograms, 'haproxy']);
  const { chaos } = await import('../test/soak/chaos.ts');
  process.exitCode = await chaos(rest);
} else if (part === 'faults') {
  installMissing(['haproxy']);
  const { faultsRun } = await import('../test/soak/faults-run.ts');
  process.exit(await faultsRun(rest));
} else if (part === 'year') {
  const { year } = await import('../test/soak/year.ts');
  process.exit(await year(rest));
} else if (part === 'canaries') {
  installMissing(['haproxy']);
  const { canaries } = await import('../test/soak/canaries.ts');
  process.exitCode = await canaries(rest);
} else if (part === 'planes') {
  process.exitCode = soakPlanes();
} else if (part === 'haproxy') {
  installMissing(['haproxy']);
  const env = { ...process.env, SLUICE_TEST_REQUESTS: rest[0] ?? '100000' };
  const { status } = spawnSync(process.execPath, ['test/traffic/haproxy-load.test.ts'], { env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
} else {
  await soakDeliveries(process.argv.slice(2).map(Number));
}
