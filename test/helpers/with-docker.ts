// node test/helpers/with-docker.ts COMMAND…: runs a command beside a Docker of its own, in the network that both are started
// in. The docker command and Sluice find that Docker, which has the image `busybox` and nothing else.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { startDocker } from './docker.ts';
import { rootfs } from './images.ts';

const docker = await startDocker();
await docker.client.importImage(Readable.from([rootfs()]), { repo: 'busybox', tag: 'latest' });
const [program, ...args] = process.argv.slice(2);
const child = spawn(program!, args, {
  env: { ...process.env, DOCKER_HOST: `unix://${docker.socket}`, SLUICE_REGIONS: `local=docker:${docker.socket}` },
  stdio: 'inherit',
});
const [code] = await once(child, 'exit');
await docker.stop();
process.exit(code ?? 1);
