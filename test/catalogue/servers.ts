// Real servers with the rules that `sluice catalogue headers` prints, each on a free port with a folder of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { serverRules } from '../../src/catalogue/header-rules.ts';
import { createOrigin } from '../../src/catalogue/origin.ts';
import { freePort } from '../helpers/free-port.ts';
import { until } from '../helpers/wait.ts';
import { type Cleanup, listen, makeFolder } from './fixture.ts';

/** Runs until the cleanup; the rest waits until it answers. */
async function start(
  cleanup: Cleanup,
  program: string,
  args: string[],
  base: string,
  env = process.env,
): Promise<string> {
  const child: ChildProcess = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr!.on('data', (text: Buffer) => {
    said += text.toString();
  });
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  cleanup.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  await until(`${program} answers`, async () => {
    if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`);
    return fetch(`${base}/health.txt`).then(
      () => true,
      () => false,
    );
  });
  return base;
}

const binaryFolders = `${process.env.PATH}:/usr/sbin:/sbin`;

export async function startNginx(cleanup: Cleanup, site: string, workers = 1): Promise<string> {
  const folder = await makeFolder(cleanup);
  const port = await freePort();
  await mkdir(join(folder, 'temp'));
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/temp/${name};`,
  );
  const config = `
daemon off; worker_processes ${workers}; pid ${folder}/pid; error_log stderr error;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 1024; }
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; ${temp.join(' ')}
  server { listen 127.0.0.1:${port}; ${serverRules('nginx', site)} } }`;
  await writeFile(join(folder, 'nginx.conf'), config);
  const args = ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr'];
  return start(cleanup, 'nginx', args, `http://127.0.0.1:${port}`, { ...process.env, PATH: binaryFolders });
}

export async function startCaddy(cleanup: Cleanup, site: string): Promise<string> {
  const folder = await makeFolder(cleanup);
  const port = await freePort();
  const path = join(folder, 'Caddyfile');
  await writeFile(
    path,
    `{\n  admin off\n}\nhttp://127.0.0.1:${port} {\n  bind 127.0.0.1\n${serverRules('caddy', site)}}\n`,
  );
  const env = { ...process.env, PATH: binaryFolders, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  return start(cleanup, 'caddy', ['run', '--config', path, '--adapter', 'caddyfile'], `http://127.0.0.1:${port}`, env);
}

export function startOrigin(cleanup: Cleanup, site: string): Promise<string> {
  const origin = createOrigin(site);
  cleanup.after(() => origin.close());
  return listen(cleanup, origin.handle);
}
