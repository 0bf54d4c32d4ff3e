// The process of router-control.ts.
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';

await createApp(readConfig(process.env, false), { routerWorkers: JSON.parse(process.env.TEST_ROUTER_WORKERS!) });
process.send!('ready');
