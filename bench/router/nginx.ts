// nginx has two roles here: the backend behind the proxies, and the proxy that ours are compared with.
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { childrenOf } from '../../test/helpers/children.ts';
import { freePort } from '../../test/helpers/free-port.ts';
import type { Issued } from '../../test/helpers/router-certificates.ts';
import { end, tempDir } from '../lib/processes.ts';
import { bodyAt } from './router-load.ts';

export interface Nginx {
  port: number;
  workers(): number[];
  /** Ends at once; gracefully: when the requests under way have their answers. */
  stop(gracefully?: boolean): Promise<void>;
}

export interface NginxRouter extends Nginx {
  /** Another backend, by `nginx -s reload`. */
  moveTo(backendPort: number): void;
}

/** nginx workers that root starts run as another user, who must be able to read the files. */
function openDir(): string {
  const dir = tempDir();
  chmodSync(dir, 0o755);
  return dir;
}

type HttpBlock = (port: number, dir: string) => string;

async function startNginx(
  http: HttpBlock,
  workers = 1,
  host = 'localhost',
): Promise<Nginx & { reload(http: HttpBlock): void }> {
  const dir = openDir();
  const port = await freePort();
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  for (const name of temp) mkdirSync(join(dir, name));
  const configure = (block: HttpBlock) => {
    const config = `daemon off; worker_processes ${workers}; pid nginx.pid; error_log stderr crit;
    events { worker_connections 4096; }
    http {
      access_log off; keepalive_requests 100000000; sendfile on; tcp_nopush on; tcp_nodelay on;
      ${temp.map((name) => `${name}_temp_path ${dir}/${name};`).join(' ')}
      ${block(port, dir)}
    }`;
    writeFileSync(join(dir, 'nginx.conf'), config);
  };
  configure(http);
  const child = spawn('nginx', ['-e', 'stderr', '-p', dir, '-c', join(dir, 'nginx.conf')], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  process.on('exit', () => child.kill('SIGTERM'));
  for (let tries = 0; ; tries++) {
    if ((await bodyAt(port, host)) !== null) break;
    if (tries > 200 || child.exitCode !== null) throw new Error('nginx does not start');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return {
    port,
    workers: () => childrenOf(child.pid!, 'worker process'),
    stop: (gracefully = false) => end(child, gracefully ? 'SIGQUIT' : 'SIGTERM'),
    reload(block) {
      configure(block);
      child.kill('SIGHUP');
    },
  };
}

export interface TlsPort {
  port: number;
  issued: Issued;
}

function secureLines({ port, issued }: TlsPort): string {
  const dir = openDir();
  writeFileSync(join(dir, 'cert.pem'), issued.certificate);
  writeFileSync(join(dir, 'key.pem'), issued.key);
  return `listen 127.0.0.1:${port} ssl;
      ssl_certificate ${dir}/cert.pem; ssl_certificate_key ${dir}/key.pem;
      ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:bench:10m;`;
}

/** Serves its name at /small and a megabyte at /large. */
export function startBackend(name: string): Promise<Nginx> {
  const files = openDir();
  writeFileSync(join(files, 'large'), Buffer.alloc(1024 * 1024, 'a'));
  return startNginx(
    (port) => `server {
      listen 127.0.0.1:${port};
      location = /small { default_type text/plain; return 200 "${name}"; }
      location = /large { root ${files}; }
    }`,
  );
}

/** With a certificate it also listens for TLS. */
export function startNginxProxy(backendPort: number, tls?: TlsPort): Promise<Nginx> {
  return startNginx(
    (port) => `upstream backend { server 127.0.0.1:${backendPort}; keepalive 128; keepalive_requests 100000000; }
    server {
      listen 127.0.0.1:${port};
      ${tls ? secureLines(tls) : ''}
      location / {
        proxy_pass http://backend;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $http_host;
      }
    }`,
  );
}

/** What a router of ours does too: it finds the backend by host name, says who asks, and writes a line for each request. */
export async function startNginxRouter(
  hosts: string[],
  backendPort: number,
  workers: number,
  tls?: TlsPort,
): Promise<NginxRouter> {
  const secure = tls ? secureLines(tls) : '';
  const to =
    (backend: number): HttpBlock =>
    (port, dir) =>
      `
    map_hash_max_size 65536; map_hash_bucket_size 128;
    map $host $pool { ${hosts.map((host) => `${host} backend;`).join(' ')} }
    log_format line '$msec $remote_addr $host $request_method $uri $status $body_bytes_sent $upstream_header_time';
    upstream backend { server 127.0.0.1:${backend}; keepalive 128; keepalive_requests 100000000; }
    server {
      listen 127.0.0.1:${port};
      ${secure}
      access_log ${dir}/access.log line buffer=64k flush=1s;
      location / {
        if ($pool = "") { return 404; }
        proxy_pass http://$pool;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $http_host;
        proxy_set_header X-Forwarded-For $remote_addr;
        proxy_set_header X-Forwarded-Proto $scheme;
        proxy_set_header X-Forwarded-Host $http_host;
        proxy_set_header X-Forwarded-Port $server_port;
        proxy_set_header X-Real-IP $remote_addr;
        proxy_set_header Forwarded "for=$remote_addr;proto=$scheme;host=\\"$http_host\\"";
      }
    }`;
  const { reload, ...nginx } = await startNginx(to(backendPort), workers, hosts[0]!);
  return { ...nginx, moveTo: (backend) => reload(to(backend)) };
}
