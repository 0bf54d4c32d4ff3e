// The service as it is, access log and all, but for the limit of requests a minute, which would stop any benchmark after
// 600 (it is still counted for every request), and those of projects and environments.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

const unlimited = { SLUICE_PROJECTS_PER_ACCOUNT: '0', SLUICE_QUOTAS: 'environments=none' };
const app = await createApp(readConfig({ ...unlimited, ...process.env }, false), {
  tokenLimit: 1_000_000_000,
});
process.on('SIGTERM', async () => {
  await app.stop();
  process.exit(0);
});
process.send!({ url: app.apiUrl() });
