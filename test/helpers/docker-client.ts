// What tests ask of a Docker engine beside the service, by way of the service's own requests.
import type { Readable } from 'node:stream';
import type {
  ContainerConfig,
  ContainerInfo,
  ContainerInspectInfo,
  DockerRequest,
  NetworkInfo,
} from '../../src/engines/docker/docker-api.ts';
import { type DockerApi, openDockerApi } from '../../src/engines/docker/docker-api.ts';
import { jsonLines } from '../../src/engines/docker/docker-client.ts';

type Query = NonNullable<DockerRequest['query']>;

/** More of what an inspection says than the service reads. */
export interface InspectedContainer extends ContainerInspectInfo {
  Name: string;
  RestartCount: number;
  Config: ContainerInspectInfo['Config'] & { Image: string; Env: string[] };
  HostConfig: NonNullable<ContainerConfig['HostConfig']> & { Privileged: boolean; CapAdd: string[] | null };
  NetworkSettings: {
    Networks: Record<string, { IPAddress: string }>;
    Ports: Record<string, { HostIp: string; HostPort: string }[] | null>;
  };
}

export interface InspectedImage {
  Id: string;
  RepoTags: string[];
  Size: number;
  Config: {
    User: string;
    Volumes: Record<string, object>;
    ExposedPorts: Record<string, object>;
    Healthcheck?: { Test: string[] };
  };
}

export type TestContainer = ReturnType<TestDockerClient['getContainer']>;

export class TestDockerClient {
  readonly #api: DockerApi;

  private constructor(api: DockerApi) {
    this.#api = api;
  }

  static async open(socketPath: string): Promise<TestDockerClient> {
    return new TestDockerClient(await openDockerApi({ socketPath }));
  }

  async ping(): Promise<void> {
    await (await this.#api.stream('GET', '/_ping')).toArray();
  }

  listContainers(query: Query = {}): Promise<ContainerInfo[]> {
    return this.#api.request('GET', '/containers/json', { query });
  }

  async createContainer({
    name,
    ...body
  }: Omit<ContainerConfig, 'HostConfig'> & { name?: string; HostConfig?: object }) {
    const query = { name };
    const { Id } = await this.#api.request<{ Id: string }>('POST', '/containers/create', { query, body });
    return this.getContainer(Id);
  }

  getContainer(id: string) {
    const path = `/containers/${id}`;
    const post = (action: string, query: Query = {}) => this.#api.request('POST', `${path}/${action}`, { query });
    return {
      id,
      inspect: () => this.#api.request<InspectedContainer>('GET', `${path}/json`),
      start: () => post('start'),
      stop: (query: Query) => post('stop', query),
      kill: () => post('kill'),
      remove: (query: Query = {}) => this.#api.request('DELETE', path, { query }),
      top: (query: Query) =>
        this.#api.request<{ Titles: string[]; Processes: string[][] }>('GET', `${path}/top`, { query }),
      logs: () => this.#text('GET', `${path}/logs`, { query: { stdout: true, stderr: true } }),
      /** Runs a command to its end. */
      run: async (command: string[]) => {
        const body = { Cmd: command, AttachStdout: true };
        const { Id } = await this.#api.request<{ Id: string }>('POST', `${path}/exec`, { body });
        const output = await this.#text('POST', `/exec/${Id}/start`, { body: {} });
        const { ExitCode } = await this.#api.request<{ ExitCode: number }>('GET', `/exec/${Id}/json`);
        return { output, exitCode: ExitCode };
      },
    };
  }

  listNetworks(query: Query = {}): Promise<NetworkInfo[]> {
    return this.#api.request('GET', '/networks', { query });
  }

  getNetwork(id: string) {
    const path = `/networks/${id}`;
    return {
      inspect: () => this.#api.request<NetworkInfo>('GET', path),
      remove: () => this.#api.request('DELETE', path),
    };
  }

  getImage(name: string) {
    const path = `/images/${name}`;
    return {
      inspect: () => this.#api.request<InspectedImage>('GET', `${path}/json`),
      remove: (query: Query) => this.#api.request('DELETE', path, { query }),
      tag: (repo: string, tag: string) => this.#api.request('POST', `${path}/tag`, { query: { repo, tag } }),
      push: async (login: object) => {
        const [, repository, tag] = /^(.*):([^:/]+)$/.exec(name)!;
        await this.#follow(`/images/${repository}/push`, { query: { tag }, login });
      },
    };
  }

  /** Removes the images that have no name and no container, as `docker image prune` does. */
  pruneImages(): Promise<unknown> {
    return this.#api.request('POST', '/images/prune');
  }

  pull(image: string): Promise<void> {
    return this.#follow('/images/create', { query: { fromImage: image } });
  }

  /** Makes an image of one layer; `changes` are instructions as in a Containerfile. */
  importImage(layer: Readable, { repo, tag, changes = [] }: { repo: string; tag: string; changes?: string[] }) {
    const query = new URLSearchParams({ fromSrc: '-', repo, tag });
    for (const change of changes) query.append('changes', change);
    return this.#follow(`/images/create?${query}`, { body: layer });
  }

  buildImage(files: Readable, query: Query): Promise<void> {
    return this.#follow('/build', { query, body: files });
  }

  async #follow(path: string, asked: DockerRequest): Promise<void> {
    for await (const { error } of jsonLines<{ error?: string }>(await this.#api.stream('POST', path, asked)))
      if (error !== undefined) throw new Error(error);
  }

  async #text(method: 'GET' | 'POST', path: string, asked: DockerRequest): Promise<string> {
    return Buffer.concat(await (await this.#api.stream(method, path, asked)).toArray()).toString();
  }
}
