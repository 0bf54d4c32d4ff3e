// Makes the namespace of a project ready, once per process: the namespace itself, where each project has one, and the
// policy that says who may send requests to what is in it.
import { EngineError } from '../engine.ts';
import { applyObject, findObject, type KubeClient } from './kube-client.ts';
import type { KubeObject } from './kube-objects.ts';
import type { Routers } from './kubernetes-settings.ts';
import { namespaceObject, networkPolicy } from './manifests.ts';
import { isOwn, label, type Namespaces, namespaceOf, policyName } from './object-names.ts';

interface NamespacesParts {
  client: KubeClient;
  /** The installation and region that own the objects. */
  owner: string;
  namespaces: Namespaces;
  /** Who may send requests to instances; none: anyone may. */
  routers: Routers[];
}

export class ProjectNamespaces {
  readonly #parts: NamespacesParts;
  readonly #ready = new Map<string, Promise<void>>();

  constructor(parts: NamespacesParts) {
    this.#parts = parts;
  }

  /** Gives its name. */
  async ensure(project: string): Promise<string> {
    const name = namespaceOf(this.#parts.namespaces, project);
    const ready = this.#ready.get(name) ?? this.#prepare(name, project);
    this.#ready.set(name, ready);
    await ready.catch((error) => {
      this.#ready.delete(name);
      throw error;
    });
    return name;
  }

  /** It was removed. */
  forget(name: string): void {
    this.#ready.delete(name);
  }

  async #prepare(name: string, project: string): Promise<void> {
    const { client, owner, namespaces, routers } = this.#parts;
    if (namespaces.kind === 'per-project') await this.#create(name, project);
    if (routers.length === 0) return;
    const path = `/apis/networking.k8s.io/v1/namespaces/${name}/networkpolicies/${policyName(owner)}`;
    await applyObject(client, path, networkPolicy(owner, name, routers));
  }

  async #create(name: string, project: string): Promise<void> {
    const { client, owner } = this.#parts;
    const path = `/api/v1/namespaces/${name}`;
    const found = await findObject<KubeObject>(client, path);
    if (!found) {
      await applyObject(client, path, namespaceObject(owner, name, project));
      return;
    }
    const { labels, deletionTimestamp } = found.metadata;
    if (deletionTimestamp !== undefined) {
      throw new EngineError('unavailable', `the namespace ${name} is being removed`);
    }
    // Regions of one installation may share the namespace of a project.
    if (isOwn(owner, labels) || labels?.[label.project] === project) return;
    throw new EngineError(
      'start_failed',
      `The namespace ${name} belongs to others: choose another SLUICE_KUBERNETES_NAMESPACE_PREFIX.`,
    );
  }
}
