// Programs that tests and benchmarks use as real parts. Run as root where apt is, what is missing is installed;
// elsewhere the one command that installs it is printed, and the tests that need it are skipped aloud.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** program → Debian package */
const packageOf = {
  ffmpeg: 'ffmpeg',
  nginx: 'nginx-light',
  haproxy: 'haproxy',
  caddy: 'caddy',
  rclone: 'rclone',
  chromium: 'chromium',
  // Without the parts of a desktop browser: half the processor time for the same pages.
  'chromium-headless-shell': 'chromium-headless-shell',
  curl: 'curl',
  python3: 'python3-minimal',
  strace: 'strace',
  openssl: 'openssl',
  wrk: 'wrk',
  dockerd: 'docker.io',
  'docker-registry': 'docker-registry',
  busybox: 'busybox-static',
  ip: 'iproute2',
  'prometheus-alertmanager': 'prometheus-alertmanager',
  pebble: 'pebble',
  'pebble-challtestsrv': 'pebble',
  pgbouncer: 'pgbouncer',
  zsh: 'zsh',
  fish: 'fish',
  debootstrap: 'debootstrap',
};

export type Program = keyof typeof packageOf;

export const dockerPrograms: Program[] = ['dockerd', 'docker-registry', 'busybox', 'ip'];

export const acmePrograms: Program[] = ['pebble', 'pebble-challtestsrv'];

export const testPrograms: Program[] = [
  'ffmpeg',
  'nginx',
  'haproxy',
  'caddy',
  'rclone',
  'chromium-headless-shell',
  'curl',
  'python3',
  'strace',
  'openssl',
  'prometheus-alertmanager',
  'pgbouncer',
  'zsh',
  'fish',
  ...acmePrograms,
  ...dockerPrograms,
];

export function onPath(program: string): boolean {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.some((folder) => existsSync(join(folder, program)));
}

export function installMissing(programs: Program[]): void {
  const missing = programs.filter((program) => !onPath(program));
  const packages = [...new Set(missing.map((program) => packageOf[program]))];
  if (packages.length === 0) return;
  if (process.getuid?.() !== 0 || !onPath('apt-get')) {
    console.error(`Programs are missing. As root: apt-get install -y ${packages.join(' ')}`);
    return;
  }
  console.error(`installing ${packages.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const options = { env, stdio: ['ignore', 'ignore', 'inherit'] as ['ignore', 'ignore', 'inherit'] };
  spawnSync('apt-get', ['update', '-qq'], options);
  const { status } = spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], options);
  if (status !== 0) console.error(`they were not installed: ${packages.join(' ')}`);
}
