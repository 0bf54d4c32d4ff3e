// A real dockerd and a real docker-registry (Debian packages), each with a folder of its own, so that any number of test
// processes have theirs side by side and none touches an engine that the machine may have. Nothing leaves loopback:
// packets of containers are not forwarded, and dockerd asks no registry but those that a test names.
// Who starts one stops it; should the test process be killed, it ends too, and the next one to start clears up.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { dockerPrograms, onPath } from '../../scripts/packages.ts';
import { suspend } from './children.ts';
import { TestDockerClient } from './docker-client.ts';
import { forgetContainerd, limitMs, makeBridge, makeHome, removeHome, sbin } from './docker-leftovers.ts';
import { freePort } from './free-port.ts';
import { until } from './wait.ts';

/** Why there is no Docker here to test with, or false. For `{ skip: dockerMissing }`. */
export const dockerMissing: string | false = missing();

function missing(): string | false {
  const programs = dockerPrograms.filter((program) => !onPath(program));
  if (programs.length > 0) return `${programs.join(', ')} not installed`;
  return process.getuid?.() === 0 ? false : 'dockerd needs root';
}

export interface TestDocker {
  /** For SLUICE_REGIONS: `local=docker:${socket}`. */
  socket: string;
  client: TestDockerClient;
  /** Stops it in order, and its containers with it. */
  pause(): Promise<void>;
  /** Ends dockerd at once; its containers run on, and it finds them again at the next start or ends them. */
  kill(): Promise<void>;
  /** Starts it again, with all that it had. */
  resume(): Promise<void>;
  /** It no longer answers, and connections to it stay open. */
  freeze(): Promise<void>;
  thaw(): void;
  /** The same engine over TCP, or TLS. */
  tcp(tls?: TlsOptions): Promise<string>;
  /** Stops and removes all, once. */
  stop(): Promise<void>;
}

/** `diskMb`: its images and containers have a disk of that size, and not the one of this machine. */
export async function startDocker({ diskMb = 0 } = {}): Promise<TestDocker> {
  const home = await makeHome('docker');
  if (diskMb > 0) mountDisk(join(home, 'data'), diskMb);
  const bridge = makeBridge(home);
  const socket = join(home, 'docker.sock');
  const client = await TestDockerClient.open(socket);
  const undo: (() => unknown)[] = [];

  const start = async () => {
    rmSync(join(home, 'docker.pid'), { force: true });
    await forgetContainerd(join(home, 'exec/containerd/containerd.pid'));
    const child = inBackground(home, 'dockerd', [
      ...['--host', `unix://${socket}`, '--pidfile', join(home, 'docker.pid')],
      ...['--data-root', join(home, 'data'), '--exec-root', join(home, 'exec')],
      ...['--bridge', bridge, '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false'],
      // Should the machine have a containerd that dockerd would use instead of starting its own.
      ...['--containerd-namespace', bridge, '--containerd-plugins-namespace', `${bridge}-plugins`],
      // The same on every machine: with systemd's driver, the name of a parent has another form.
      ...['--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', `/${bridge}`],
    ]);
    await answers(child, () => client.ping());
    return child;
  };
  const end = async (signal: NodeJS.Signals) => {
    child.kill('SIGCONT');
    await ended(child, signal);
  };
  const clean = async () => {
    await end('SIGTERM');
    for (const step of undo) await step();
    await removeHome(home);
  };
  let child = await start().catch(async (error) => {
    await removeHome(home);
    throw error;
  });
  let cleaned: Promise<void> | null = null;
  const stop = () => (cleaned ??= clean());
  return {
    socket,
    client,
    pause: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    async resume() {
      child = await start();
    },
    freeze: () => suspend(child.pid!),
    thaw: () => void child.kill('SIGCONT'),
    async tcp(tls) {
      const server = (tls ? createTlsServer.bind(null, tls) : createServer)((incoming: Socket) => {
        const outgoing = connect(socket);
        incoming.pipe(outgoing).pipe(incoming);
        for (const [end, other] of [[incoming, outgoing] as const, [outgoing, incoming] as const]) {
          end.on('error', () => other.destroy());
          end.on('close', () => other.destroy());
        }
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      undo.push(() => server.close());
      return `tcp://127.0.0.1:${(server.address() as { port: number }).port}`;
    },
    stop,
  };
}

function mountDisk(folder: string, mb: number): void {
  mkdirSync(folder);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mb}m`, 'tmpfs', folder], { env: sbin });
}

export interface TestRegistry {
  /** `127.0.0.1:port`, to put before the name of an image. */
  host: string;
  /** What may push and pull, if not everyone. */
  auth: { username: string; password: string; serveraddress: string } | undefined;
  /** A docker config.json with it, for SLUICE_REGISTRY_CONFIG. */
  configPath: string | null;
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

const username = 'sluice';
const password = 'pull-and-push';
/** bcrypt, the only form the registry takes: perl -e 'print crypt("pull-and-push", q($2b$05$sluicesluicesluicesluO))' */
const htpasswd = `${username}:$2b$05$sluicesluicesluicesluOl66uj7KucPCrttE4bwFHxrPevDuSPui\n`;

export async function startRegistry({ closed = false } = {}): Promise<TestRegistry> {
  const home = await makeHome('registry');
  const host = `127.0.0.1:${await freePort()}`;
  const passwords = join(home, 'htpasswd');
  writeFileSync(passwords, htpasswd);
  const config = {
    version: 0.1,
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(home, 'images') }, delete: { enabled: true } },
    http: { addr: host, secret: 'not one' },
    ...(closed && { auth: { htpasswd: { realm: 'test', path: passwords } } }),
  };
  writeFileSync(join(home, 'config.yml'), JSON.stringify(config));
  const configPath = closed ? join(home, 'config.json') : null;
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  if (configPath) writeFileSync(configPath, JSON.stringify({ auths: { [host]: { auth } } }));

  const start = async () => {
    const child = inBackground(home, 'docker-registry', ['serve', join(home, 'config.yml')]);
    await answers(child, () => fetch(`http://${host}/v2/`));
    return child;
  };
  let child = await start();
  const clean = async () => {
    await ended(child, 'SIGKILL');
    await removeHome(home);
  };
  let cleaned: Promise<void> | null = null;
  const stop = () => (cleaned ??= clean());
  return {
    host,
    auth: closed ? { username, password, serveraddress: host } : undefined,
    configPath,
    pause: () => ended(child, 'SIGKILL'),
    async resume() {
      child = await start();
    },
    stop,
  };
}

/** It ends with this process, should that be killed before it can clean up. */
function inBackground(home: string, program: string, args: string[]): ChildProcess {
  const child = spawn('setpriv', ['--pdeathsig', 'TERM', program, ...args], {
    env: sbin,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log = createWriteStream(join(home, 'log'), { flags: 'a' });
  log.on('error', () => {});
  child.stdout!.pipe(log, { end: false });
  child.stderr!.pipe(log, { end: false });
  const tail: string[] = [];
  child.stderr!.on('data', (chunk) => tail.splice(0, Math.max(0, tail.push(String(chunk)) - 5)));
  Object.assign(child, { tail });
  return child;
}

async function answers(child: ChildProcess, ask: () => Promise<unknown>): Promise<void> {
  const answered = async () => {
    try {
      await ask();
      return true;
    } catch (error) {
      if (child.exitCode !== null || child.signalCode !== null) throw error;
      return false;
    }
  };
  try {
    await until('an answer', answered, limitMs);
  } catch (error) {
    const said = (child as ChildProcess & { tail: string[] }).tail.join('');
    await ended(child, 'SIGKILL');
    throw new Error(`${child.spawnargs.join(' ')} does not answer:\n${said}`, { cause: error });
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  const force = setTimeout(() => child.kill('SIGKILL'), limitMs);
  await exited;
  clearTimeout(force);
}
