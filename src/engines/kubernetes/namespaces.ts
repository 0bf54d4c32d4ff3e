// Makes the namespace of a project ready, once per process: the namespace itself, where each project has one, and the
// policy that says who may send requests to what is in it.
import { EngineError } from '../engine.ts';
import type { KubeObject } from './api/objects.ts';
import { apply, find } from './apply.ts';
import type { KubeContext } from './context.ts';
import { isOwn, label, namespaceOf, policyName } from './objects/names.ts';
import { namespaceObject, networkPolicy } from './objects/namespace.ts';

type NamespacesContext = Pick<KubeContext, 'client' | 'owner' | 'namespaces' | 'routers'>;

export class ProjectNamespaces {
  readonly #context: NamespacesContext;
  readonly #ready = new Map<string, Promise<void>>();

  constructor(context: NamespacesContext) {
    this.#context = context;
  }

  /** Gives its name. */
  async ensure(project: string): Promise<string> {
    const name = namespaceOf(this.#context.namespaces, project);
    const ready = this.#ready.get(name) ?? this.#prepare(name, project);
    this.#ready.set(name, ready);
    await ready.catch((error) => {
      this.#ready.delete(name);
      throw error;
    });
    return name;
  }

  /** Somebody removed it. */
  forget(name: string): void {
    this.#ready.delete(name);
  }

  async #prepare(name: string, project: string): Promise<void> {
    const { client, owner, namespaces, routers } = this.#context;
    if (namespaces.kind === 'per-project') await this.#create(name, project);
    if (routers.length === 0) return;
    const path = `/apis/networking.k8s.io/v1/namespaces/${name}/networkpolicies/${policyName(owner)}`;
    await apply(client, path, networkPolicy(owner, name, routers));
  }

  async #create(name: string, project: string): Promise<void> {
    const { client, owner } = this.#context;
    const path = `/api/v1/namespaces/${name}`;
    const found = await find<KubeObject>(client, path);
    if (!found) {
      await apply(client, path, namespaceObject(owner, name, project));
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
