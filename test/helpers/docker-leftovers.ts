// What a dockerd of a test has outside its folder, and what it leaves behind: a bridge, processes, mounts, control groups.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from './children.ts';
import { until } from './wait.ts';

/** On a disk: layers of images do not belong into memory, and what a killed run left there is found by the next one. */
const homes = process.env.SLUICE_TEST_DISK ?? tmpdir();

export const limitMs = 30_000;
export const sbin = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };

/** A folder that names the process that owns it. Folders of processes that were killed are removed too. */
export async function makeHome(kind: 'docker' | 'registry'): Promise<string> {
  const prefix = `sluice-${kind}-`;
  for (const name of readdirSync(homes).filter((each) => each.startsWith(prefix))) {
    const owner = name.slice(prefix.length).split('-')[0]!;
    // Two test processes may do so at once; whatever one of them leaves, the next one finds.
    if (!isAlive(Number(owner))) await removeHome(join(homes, name)).catch(() => {});
  }
  return mkdtempSync(join(homes, `${prefix}${process.pid}-`));
}

/** Whatever of it still runs is ended. */
export async function removeHome(home: string): Promise<void> {
  await endAllOf(home);
  unmountAllOf(home);
  const bridge = existsSync(join(home, 'bridge')) ? readFileSync(join(home, 'bridge'), 'utf8') : null;
  if (bridge) {
    removeBridge(bridge);
    removeCgroups(bridge);
  }
  for (const name of networkBridges(home)) removeBridge(name);
  rmSync(home, { recursive: true, force: true });
}

/** Docker leaves the bridges of its networks when it ends. Its database names them. */
function networkBridges(home: string): string[] {
  const database = join(home, 'data/network/files/local-kv.db');
  return existsSync(database) ? [...new Set(readFileSync(database, 'latin1').match(/br-[0-9a-f]{12}/g))] : [];
}

function ip(...args: string[]): void {
  execFileSync('ip', args, { env: sbin, stdio: ['ignore', 'ignore', 'pipe'] });
}

function removeBridge(name: string): void {
  if (existsSync(`/sys/class/net/${name}`)) ip('link', 'del', name);
}

/** A bridge of its own: two engines on one would hand out the same addresses. The name is the lock on its subnet. */
export function makeBridge(home: string): string {
  for (;;) {
    const [a, b] = [200 + Math.floor(Math.random() * 50), Math.floor(Math.random() * 256)];
    const name = `slc-${a}-${b}`;
    try {
      ip('link', 'add', 'name', name, 'type', 'bridge');
    } catch (error) {
      if (/exists/.test(String(error))) continue;
      throw error;
    }
    writeFileSync(join(home, 'bridge'), name);
    ip('addr', 'add', `10.${a}.${b}.1/24`, 'dev', name);
    ip('link', 'set', name, 'up');
    return name;
  }
}

/**
 * The containerd of a killed dockerd ends with it, but where process 1 is slow to bury it, the next dockerd takes the
 * dead one for living and waits for it.
 */
export async function forgetContainerd(pidFile: string): Promise<void> {
  const isGone = () => !existsSync(pidFile) || !isAlive(Number(readFileSync(pidFile, 'utf8')));
  await until('containerd to end', isGone, limitMs).catch(() => {});
  rmSync(pidFile, { force: true });
}

/** What a killed dockerd left running: its containerd, and the containers' keepers, which end the containers. */
async function endAllOf(home: string): Promise<void> {
  const killLeft = () => {
    const left = processesOf(home);
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
    return left.length === 0;
  };
  await until(`the processes of ${home} to end`, killLeft, limitMs);
}

function processesOf(home: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const mounts = readFileSync(`/proc/${pid}/mounts`, 'utf8').split('\n', 1)[0] ?? '';
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(home) || mounts.includes(home);
      } catch {
        return false;
      }
    })
    .map(Number);
}

function unmountAllOf(home: string): void {
  const places = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((place) => place.startsWith(`${home}/`));
  for (const place of places.reverse()) execFileSync('umount', ['--lazy', place], { env: sbin });
}

function removeCgroups(name: string): void {
  const root = '/sys/fs/cgroup';
  for (const folder of [root, ...readdirSync(root).map((each) => join(root, each))]) {
    try {
      execFileSync('find', [join(folder, name), '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'], {
        stdio: 'ignore',
      });
    } catch {
      // Not every controller has one.
    }
  }
}
