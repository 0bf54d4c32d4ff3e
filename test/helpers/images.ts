// Small images made of busybox, without any registry on the internet: one layer with /bin/busybox, told apart by what
// they run. They are pushed to a registry of the test and removed from the engine, so that the next use pulls them.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { TestDocker, TestRegistry } from './docker.ts';

const answer = `{"image":"'$IMAGE'","revision":"'$DEPLOY_REVISION'","instance":"'$DEPLOY_INSTANCE'"}`;
const site = `mkdir -p /www/cgi-bin && cd /www && echo '${answer}' > index.html`;
const listen = 'exec httpd -f -p "$PORT" -h /www';
const failing = `printf '#!/bin/sh\\nprintf "Status: 500 Failed\\\\r\\\\n\\\\r\\\\nfailed\\\\n"\\n'`;

const scripts = {
  /** Answers / with its image, revision and instance, as the stand-in does, and anything else with 404. */
  web: `${site} && ${listen}`,
  /** Answers / with 500. */
  failing: `${site} && rm index.html && ${failing} > cgi-bin/index.cgi && chmod +x cgi-bin/index.cgi && ${listen}`,
  /** Ends at once with the code 3. */
  exits: 'echo no reason to stay >&2; exit 3',
  /** Runs and never listens. */
  deaf: 'exec sleep 3600',
  /** As web, but on port 3000, whatever PORT says. */
  elsewhere: `PORT=3000; ${site} && ${listen}`,
  /** As web, but only from inside. */
  local: `${site} && exec httpd -f -p "127.0.0.1:$PORT" -h /www`,
  /** As web, but does not answer /cgi-bin/slow for a minute. */
  slow: `${site} && printf '#!/bin/sh\\nsleep 60\\n' > cgi-bin/slow && chmod +x cgi-bin/slow && ${listen}`,
  /** Takes more and more memory. */
  hungry: 'exec tail /dev/zero',
  /** Says lines 1 to 20 on stdout and warnings 1 to 3 on stderr (and a line of $LONG), then answers as web does. */
  chatty: `[ -z "$LONG" ] || printf "%\${LONG}s\\n" x; for n in $(seq 20); do echo "line $n"; done; for n in 1 2 3; do echo "warning $n" >&2; done; ${site} && ${listen}`,
  /** Counts to $LINES, 20,000 lines a second at most, while it answers as web does. */
  counting: `(n=0; while [ $n -lt $LINES ]; do seq $((n+1)) $((n+1000)); n=$((n+1000)); sleep 0.05; done) & ${site} && ${listen}`,
  /** Prints as much as it can, while it answers as web does. */
  flooding: `yes "$(seq -s ' ' 40)" & ${site} && ${listen}`,
  /** As web, but asking it to end does nothing. */
  stubborn: `trap '' TERM; ${site} && ${listen}`,
  /** Cannot be started: it wants to run as a user that it does not have. */
  broken: 'true',
  /** Its program is not there. */
  empty: null,
};

export type ImageKind = keyof typeof scripts;

/** Makes, pushes and forgets it; `image` is its name here, `tag` a version. Returns the reference to deploy. */
export async function pushImage(
  docker: TestDocker,
  registry: TestRegistry,
  kind: ImageKind,
  { image = kind as string, tag = 'v1', expose = [] as number[], ballastMb = 0 } = {},
): Promise<string> {
  const reference = await buildImage(docker, kind, { repository: `${registry.host}/${image}`, tag, expose, ballastMb });
  const made = docker.client.getImage(reference);
  // Docker wants credentials for every push, be they empty.
  await made.push(registry.auth ?? { username: '', password: '', serveraddress: '' });
  await made.remove({ force: true });
  return reference;
}

/** Makes it in the engine alone, as `docker build` does. `says` is what it answers as its image. */
export async function buildImage(
  { client }: TestDocker,
  kind: ImageKind,
  {
    repository,
    tag = 'latest',
    expose = [] as number[],
    says = `${repository}:${tag}`,
    ballastMb = 0,
  }: {
    repository: string;
    tag?: string;
    expose?: number[];
    says?: string;
    /** What it has beside its program, and shares with no other image. */
    ballastMb?: number;
  },
): Promise<string> {
  const { env, command, user } = programOf(kind, says);
  const changes = [`ENV ${env.join(' ')}`, `CMD ${JSON.stringify(command)}`, ...(user ? [`USER ${user}`] : [])];
  if (expose.length > 0) changes.push(`EXPOSE ${expose.join(' ')}`);
  const files = ballastMb > 0 ? makeRootfs({ name: `${repository}:${tag}`, mb: ballastMb }) : rootfs();
  await client.importImage(Readable.from([files]), { repo: repository, tag, changes });
  return `${repository}:${tag}`;
}

/** How the image of this kind is to be run. */
export function programOf(
  kind: ImageKind,
  reference: string,
): { env: string[]; command: string[]; user: string | null } {
  const script = scripts[kind];
  return {
    env: [`IMAGE=${reference}`, 'PATH=/bin'],
    command: script === null ? ['/bin/absent'] : ['/bin/sh', '-c', script],
    user: kind === 'broken' ? 'nobody-here' : null,
  };
}

let layer: Buffer | null = null;

export function rootfs(): Buffer {
  layer ??= makeRootfs();
  return layer;
}

function makeRootfs(ballast: { name: string; mb: number } | null = null): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rootfs-'));
  try {
    if (ballast) {
      writeFileSync(join(folder, 'ballast'), ballast.name);
      truncateSync(join(folder, 'ballast'), ballast.mb * 1_000_000);
    }
    mkdirSync(join(folder, 'bin'));
    mkdirSync(join(folder, 'tmp'));
    const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim();
    cpSync(busybox, join(folder, 'bin/busybox'), { dereference: true });
    for (const name of [
      'sh',
      'httpd',
      'sleep',
      'seq',
      'mkdir',
      'rm',
      'chmod',
      'printf',
      'cat',
      'id',
      'env',
      'yes',
      'tail',
      'awk',
    ]) {
      symlinkSync('busybox', join(folder, 'bin', name));
    }
    // The same bytes every time, so that images of two test processes are the same too.
    const settled = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
    return execFileSync('tar', ['-cf', '-', ...settled, '-C', folder, '.'], { maxBuffer: 64 * 1024 * 1024 });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
