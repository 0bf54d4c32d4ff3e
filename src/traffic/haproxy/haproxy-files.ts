// HAProxy's files. Everything is written to them before the running HAProxy is changed, so that it has it whenever it
// starts or reloads.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { agentSocketPath } from '../worker/agent-protocol.ts';

export interface HaproxyFiles {
  folder: string;
  config: string;
  /** A file per backend. */
  backends: string;
  routes: string;
  challengeSocket: string;
  ticketKeys: string;
  /** Of the routing table that it has in force. */
  version: string;
  certificates: string;
  certificateList: string;
  adminSocket: string;
  masterSocket: string;
  pid: string;
  /** Of the configuration with which it runs. */
  hash: string;
  /** The ids of its workers, of those that ended while nothing watched them, too. */
  workers: string;
}

/** `sockets`: a folder whose path is short enough for unix sockets (107 bytes). */
export const haproxyFiles = (folder: string, sockets: string): HaproxyFiles => ({
  folder,
  config: join(folder, 'haproxy.cfg'),
  backends: join(folder, 'backends'),
  routes: join(folder, 'routes.map'),
  challengeSocket: join(sockets, 'challenges.sock'),
  ticketKeys: join(folder, 'ticket-keys'),
  version: join(folder, 'version'),
  certificates: join(folder, 'certificates'),
  certificateList: join(folder, 'certificates.list'),
  adminSocket: join(sockets, 'haproxy.sock'),
  masterSocket: join(sockets, 'haproxy-master.sock'),
  pid: join(folder, 'haproxy.pid'),
  hash: join(folder, 'config.hash'),
  workers: join(folder, 'workers'),
});

export const haproxyFilesOf = (dataDir: string): HaproxyFiles =>
  haproxyFiles(join(dataDir, 'routing', 'haproxy'), dirname(agentSocketPath(dataDir)));

export async function makeFolders(files: HaproxyFiles): Promise<void> {
  for (const folder of [files.folder, files.backends, files.certificates]) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  }
  for (const file of [files.routes, files.certificateList]) {
    await writeFile(file, '', { flag: 'a', mode: 0o600 });
  }
}

/** A reader sees the old content or the new one, never a part. */
export async function replaceFile(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new`, content, { mode: 0o600 });
  await rename(`${path}.new`, path);
}

export const removeFile = (path: string): Promise<void> => rm(path, { force: true });

export async function readOrEmpty(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/** HAProxy loads the files of a folder that end with `.cfg`. */
export const backendFile = (files: HaproxyFiles, name: string): string => join(files.backends, `${name}.cfg`);

/** The backends there are, with the revision each stands for; null: a spare one. */
export async function readBackends(files: HaproxyFiles): Promise<Map<string, string | null>> {
  const backends = new Map<string, string | null>();
  for (const file of await readdir(files.backends)) {
    const name = /^(b\d+)\.cfg$/.exec(file)?.[1];
    if (name === undefined) continue;
    const use = /^# (.*)$/m.exec(await readFile(join(files.backends, file), 'utf8'))?.[1] ?? 'spare';
    backends.set(name, use === 'spare' ? null : use);
  }
  return backends;
}

/** Lines of a map: key, blank, value. */
export const mapText = (lines: ReadonlyMap<string, string>): string =>
  [...lines].map(([key, value]) => `${key} ${value}\n`).join('');

export function readMap(text: string): Map<string, string> {
  const lines = text.split('\n').map((line) => line.split(' '));
  return new Map(lines.filter((line) => line.length === 2).map(([key, value]) => [key!, value!]));
}
