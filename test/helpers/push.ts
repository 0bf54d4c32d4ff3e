// Pushes images to a registry by its own API, without an engine: one layer, a config, a manifest, perhaps a list of them.
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { type ImageKind, programOf, rootfs } from './images.ts';

/** Where to push. `host` with its port; `auth` as `user:password`. */
export interface PushTarget {
  host: string;
  auth?: { username: string; password: string } | undefined;
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

const types = {
  manifest: 'application/vnd.docker.distribution.manifest.v2+json',
  list: 'application/vnd.docker.distribution.manifest.list.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
  layer: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
};

async function send({ host, auth }: PushTarget, path: string, init: RequestInit): Promise<Response> {
  const url = path.startsWith('http') ? path : `http://${host}${path}`;
  const basic = auth && `Basic ${Buffer.from(`${auth.username}:${auth.password}`).toString('base64')}`;
  const response = await fetch(url, { ...init, headers: { ...init.headers, ...(basic && { authorization: basic }) } });
  if (!response.ok && response.status !== 404) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

async function pushBlob(to: PushTarget, repository: string, bytes: Buffer): Promise<{ digest: string; size: number }> {
  const digest = digestOf(bytes);
  const known = await send(to, `/v2/${repository}/blobs/${digest}`, { method: 'HEAD' });
  if (known.status === 404) {
    const upload = await send(to, `/v2/${repository}/blobs/uploads/`, { method: 'POST' });
    const at = new URL(upload.headers.get('location')!, `http://${to.host}`);
    at.searchParams.set('digest', digest);
    await send(to, at.href, { method: 'PUT', body: new Uint8Array(bytes) });
  }
  return { digest, size: bytes.length };
}

async function pushManifest(to: PushTarget, repository: string, name: string, type: string, manifest: object) {
  const bytes = Buffer.from(JSON.stringify(manifest));
  await send(to, `/v2/${repository}/manifests/${name}`, {
    method: 'PUT',
    headers: { 'content-type': type },
    body: new Uint8Array(bytes),
  });
  return { digest: digestOf(bytes), size: bytes.length, mediaType: type };
}

export interface Pushed {
  config?: Record<string, unknown>;
  layer?: Buffer;
  architecture?: string;
}

/** An image of one layer; gives its digest. `name`: a tag, or nothing for the digest alone. */
export async function pushTo(to: PushTarget, repository: string, name: string, image: Pushed): Promise<string> {
  return (await pushPlatform(to, repository, name, image)).digest;
}

let packed: { layer: Buffer; gzipped: Buffer } | null = null;
function gzipped(layer: Buffer): Buffer {
  if (packed?.layer !== layer) packed = { layer, gzipped: gzipSync(layer) };
  return packed.gzipped;
}

async function pushPlatform(to: PushTarget, repository: string, name: string | null, image: Pushed) {
  const { layer = Buffer.alloc(1024), config = {}, architecture = 'amd64' } = image;
  const stored = await pushBlob(to, repository, gzipped(layer));
  const about = { os: 'linux', architecture, config, rootfs: { type: 'layers', diff_ids: [digestOf(layer)] } };
  const described = await pushBlob(to, repository, Buffer.from(JSON.stringify(about)));
  const manifest = {
    schemaVersion: 2,
    mediaType: types.manifest,
    config: { mediaType: types.config, ...described },
    layers: [{ mediaType: types.layer, ...stored }],
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return pushManifest(to, repository, name ?? digestOf(bytes), types.manifest, manifest);
}

/** A list with one image per platform; gives the digest of the list. */
export async function pushList(to: PushTarget, repository: string, tag: string, images: Pushed[]): Promise<string> {
  const manifests: object[] = [];
  for (const image of images) {
    const { architecture = 'amd64' } = image;
    const pushed = await pushPlatform(to, repository, null, image);
    manifests.push({ ...pushed, platform: { os: 'linux', architecture } });
  }
  const list = { schemaVersion: 2, mediaType: types.list, manifests };
  return (await pushManifest(to, repository, tag, types.list, list)).digest;
}

/** One of the programs of images.ts, with nothing but busybox around it. Returns the reference to deploy. */
export async function pushProgram(
  to: PushTarget,
  kind: ImageKind,
  { image = kind as string, tag = 'v1', user = undefined as string | undefined } = {},
): Promise<string> {
  const reference = `${to.host}/${image}:${tag}`;
  const { env, command, user: own } = programOf(kind, reference);
  const config = { Env: env, Cmd: command, ...((user ?? own) && { User: user ?? own }) };
  await pushTo(to, image, tag, { config, layer: rootfs() });
  return reference;
}
