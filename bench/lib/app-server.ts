// The service as it is, access log and all, but for the limit of requests a minute, which would stop any benchmark after
// 600 (it is still counted for every request), and that of projects.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

const app = await createApp(readConfig({ SLUICE_PROJECTS_PER_ACCOUNT: '0', ...process.env }, false), {
  tokenLimit: 1_000_000_000,
});
process.on('SIGTERM', async () => {
  await app.stop();
  process.exit(0);
});
process.send!({ url: app.apiUrl() });
