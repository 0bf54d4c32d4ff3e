// The service on an installation whose $BENCH_ENVIRONMENTS environments run in the region `local`, without instances that
// would need a machine each; `side` is a region of stand-ins, for what is deployed meanwhile.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { calmEngine } from './scale-installation.ts';

const unlimited = { SLUICE_PROJECTS_PER_ACCOUNT: '0', SLUICE_QUOTAS: 'environments=none' };
const app = await createApp(readConfig({ ...unlimited, ...process.env }, false), {
  tokenLimit: 1_000_000_000,
  standinInProcess: true,
  engines: { local: calmEngine(Number(process.env.BENCH_ENVIRONMENTS)) },
});
process.on('SIGTERM', () => process.exit(0));
process.send!({ url: app.apiUrl() });
