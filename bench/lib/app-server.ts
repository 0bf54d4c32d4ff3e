// The service as it is, access log and all, but for one thing: the limit of requests a minute, which would stop any
// benchmark after 600. It is still counted for every request.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

const app = await createApp(readConfig(process.env, false), { tokenLimit: 1_000_000_000 });
process.on('SIGTERM', async () => {
  await app.stop();
  process.exit(0);
});
process.send!({ url: app.apiUrl() });
