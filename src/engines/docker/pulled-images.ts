// Which images of the engine this service pulled, and the removal of those that nothing needs any more. What it pulled has
// one more tag, so that any process of the installation knows it again; an image that was there before never gets one.
// Removal is by name and never by force: Docker itself refuses where a container still uses the image.
import { statfs } from 'node:fs/promises';
import { parseImage, pinImage } from '../../contract/references.ts';
import { LruCache } from '../../lib/bounded-cache.ts';
import type { ImageAccess, PreparedImage, RemovedImages } from '../engine.ts';
import type { ContainerInfo, ImageInfo, ImageInspectInfo } from './docker-api.ts';
import { type DockerClient, nullOnStatus } from './docker-client.ts';
import { inspectImage, prepareImage, tcpPortsOf } from './docker-image.ts';

/** A host name that cannot exist: nobody can pull or push it. */
const tagHost = 'sluice.invalid/pulled';

/**
 * From a pull to the row that says so, which is saved at once as a rule; where room is short, no longer is waited for it. A
 * container whose image is gone pulls it again.
 */
const neededForMs = { usually: 60_000, shortOfRoom: 5000 };
/** Less free room than this share of the disk. */
const shortShare = 0.15;
const rememberedImages = 500;

export interface RemovalRules {
  /** Digests and ids of the images that revisions refer to. */
  kept: ReadonlySet<string>;
  nowMs: number;
  /** For how long nothing has needed an image that is removed. Where room is short, that does not matter. */
  idleMs: number;
  isShort: boolean;
}

export class PulledImages {
  readonly #client: DockerClient;
  readonly #repository: string;
  /** By id: when it was last prepared. */
  readonly #preparedAt = new Map<string, number>();
  /** By id: since when nothing needs it. */
  #idleSince = new Map<string, number>();
  /** By id, which says all that is in an image. */
  readonly #exposed = new LruCache<number[]>(rememberedImages);

  constructor(client: DockerClient, installation: string) {
    this.#client = client;
    this.#repository = `${tagHost}/${installation.toLowerCase()}`;
  }

  /** Pulls the image. */
  async prepare(image: string, access: ImageAccess, nowMs: number): Promise<PreparedImage> {
    const before = new Set((await this.#list()).map(({ Id }) => Id));
    const digest = await prepareImage(this.#client, image, access);
    const found = await inspectImage(this.#client, pinImage(image, digest));
    if (!found) return { digest, exposed: [] };
    this.#preparedAt.set(found.Id, nowMs);
    if (!before.has(found.Id)) await this.#mark(found.Id);
    return { digest, exposed: this.#exposedBy(found) };
  }

  /** The TCP ports that the image of this id declares. */
  async exposedPorts(id: string): Promise<number[]> {
    const known = this.#exposed.get(id);
    if (known) return known;
    const found = await inspectImage(this.#client, id);
    return found ? this.#exposedBy(found) : [];
  }

  #exposedBy({ Id, Config }: ImageInspectInfo): number[] {
    const ports = tcpPortsOf(Config?.ExposedPorts);
    this.#exposed.set(Id, ports);
    return ports;
  }

  /** Those that are none of `kept`, that no container uses, and that nobody else has given a name. */
  async remove({ kept, nowMs, idleMs, isShort }: RemovalRules): Promise<RemovedImages> {
    const neededMs = isShort ? neededForMs.shortOfRoom : neededForMs.usually;
    const [images, containers] = await Promise.all([this.#list({ 'shared-size': true }), this.#containers()]);
    const used = new Set(containers.map(({ ImageID }) => ImageID));
    const idle = images.filter(
      (image) =>
        this.#isOurs(image) &&
        !used.has(image.Id) &&
        !namesOf(image).some((name) => kept.has(name)) &&
        nowMs - (this.#preparedAt.get(image.Id) ?? Number.NEGATIVE_INFINITY) >= neededMs,
    );
    const since = new Map(idle.map(({ Id }) => [Id, this.#idleSince.get(Id) ?? nowMs]));
    this.#idleSince = since;
    for (const [id, at] of this.#preparedAt) if (nowMs - at >= neededForMs.usually) this.#preparedAt.delete(id);
    const removed: RemovedImages = { images: 0, bytes: 0 };
    for (const image of idle) {
      if ((!isShort && nowMs - since.get(image.Id)! < idleMs) || !(await this.#removeOne(image))) continue;
      removed.images++;
      removed.bytes += image.Size - Math.max(0, image.SharedSize ?? 0);
    }
    return removed;
  }

  /** Whether the disk of the engine is nearly full. False where that cannot be seen from here. */
  async isDiskShort(): Promise<boolean> {
    const { docker, call, timeouts } = this.#client;
    try {
      const { DockerRootDir } = await call(timeouts.read, 'unavailable', (signal) =>
        docker.request<{ DockerRootDir: string }>('GET', '/info', { signal }),
      );
      const { bavail, blocks } = await statfs(DockerRootDir);
      return bavail < blocks * shortShare;
    } catch {
      return false;
    }
  }

  /** By the tag of any installation: for the doctor. */
  async count(): Promise<{ images: number; bytes: number }> {
    const pulled = (await this.#list()).filter(({ RepoTags }) =>
      RepoTags?.some((tag) => tag.startsWith(`${tagHost}/`)),
    );
    return { images: pulled.length, bytes: pulled.reduce((sum, { Size }) => sum + Size, 0) };
  }

  /** Nobody else has given it a name: what it has beside our tag is of the repositories it was pulled from. */
  #isOurs({ RepoTags, RepoDigests }: ImageInfo): boolean {
    const pulledFrom = new Set((RepoDigests ?? []).map((name) => name.split('@')[0]));
    const tags = RepoTags ?? [];
    return (
      tags.some((tag) => this.#isMark(tag)) &&
      tags.every((tag) => this.#isMark(tag) || pulledFrom.has(repositoryOf(tag)))
    );
  }

  readonly #isMark = (tag: string): boolean => tag.startsWith(`${this.#repository}:`);

  async #mark(id: string): Promise<void> {
    const { docker, change, timeouts } = this.#client;
    const tag = id.replace('sha256:', '').slice(0, 32);
    await change(timeouts.change, 'unavailable', (signal) =>
      docker.request('POST', `/images/${id}/tag`, { query: { repo: this.#repository, tag }, signal }),
    );
  }

  /** Our tag goes last: until then another attempt finds the image again. */
  async #removeOne({ Id, RepoTags, RepoDigests }: ImageInfo): Promise<boolean> {
    const { docker, change, timeouts } = this.#client;
    const names = [...(RepoTags ?? []), ...(RepoDigests ?? [])].filter((name) => !name.includes('<none>'));
    const [marks, others] = [names.filter(this.#isMark), names.filter((name) => !this.#isMark(name))];
    for (const name of [...others, ...marks]) {
      await nullOnStatus([404, 409], () =>
        change(timeouts.change, 'unavailable', (signal) => docker.request('DELETE', `/images/${name}`, { signal })),
      );
    }
    return !(await this.#list()).some((image) => image.Id === Id);
  }

  /** Sizes of shared layers take the engine a while. */
  #list(more: { 'shared-size'?: true } = {}): Promise<ImageInfo[]> {
    const { docker, call, timeouts } = this.#client;
    return call(timeouts.read, 'unavailable', (signal) =>
      docker.request<ImageInfo[]>('GET', '/images/json', { query: { digests: true, ...more }, signal }),
    );
  }

  #containers(): Promise<ContainerInfo[]> {
    const { docker, call, timeouts } = this.#client;
    return call(timeouts.read, 'unavailable', (signal) =>
      docker.request<ContainerInfo[]>('GET', '/containers/json', { query: { all: true }, signal }),
    );
  }
}

const namesOf = ({ Id, RepoDigests }: ImageInfo): string[] => [
  Id,
  ...(RepoDigests ?? []).flatMap((name) => parseImage(name)?.digest ?? []),
];

/** `127.0.0.1:5000/shop:v1` → `127.0.0.1:5000/shop`. */
const repositoryOf = (tag: string): string => tag.slice(0, tag.lastIndexOf(':'));
