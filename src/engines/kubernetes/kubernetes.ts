// Kubernetes as an engine. A set is a ReplicaSet (sets.ts), and each of its pods is given to an instance (members.ts). The
// cluster replaces a pod that was removed, evicted or lost with its node, even while this service is away.
import { parseImage } from '../../contract/references.ts';
import type { Log } from '../../lib/log.ts';
import { StartError } from '../../lib/start-error.ts';
import { defaultLogBytes, type Engine, EngineError, type EngineInstance, needsRegistry } from '../engine.ts';
import { createRegistry, type Registry } from '../registry/registry.ts';
import type { Mirrors } from '../registry/registry-endpoints.ts';
import { AccessError, type ClusterAccess, readInCluster, readKubeconfig } from './cluster-access.ts';
import { connectKubernetes } from './kube-client.ts';
import type { WatchTimes } from './kube-watch.ts';
import type { KubernetesSettings, Routers } from './kubernetes-settings.ts';
import { instancesOf, memberOf, type SetInstance } from './members.ts';
import { type Namespaces, pathOf, selectorOf, setIdentityOf } from './object-names.ts';
import { ObservedCluster, type ObservedSets } from './observed-cluster.ts';
import { PodBindings } from './pod-bindings.ts';
import { type Followed, followPods, readPodLog } from './pod-log.ts';
import { hasRunning, readPod } from './pod-status.ts';
import { ProjectNamespaces } from './project-namespaces.ts';
import { Sets } from './sets.ts';

export interface KubernetesOptions {
  access: ClusterAccess;
  /** The installation and region that own what is made; those of others are neither listed nor changed. */
  installation: string;
  namespaces: Namespaces;
  routers: Routers[];
  registry: Registry;
  times?: WatchTimes;
  log?: Log;
}

const probeMs = 5_000;
const defaultStartS = 60;

export function createKubernetesEngine(options: KubernetesOptions): Engine {
  const { installation: owner, namespaces, routers, registry, times, log } = options;
  const client = connectKubernetes(options.access);
  const observed = new ObservedCluster({ client, owner, namespaces, times });
  const { pods, replicaSets } = observed;
  const bindings = new PodBindings(client, observed, log);
  const projects = new ProjectNamespaces({ client, owner, namespaces, routers });
  const sets = new Sets({ client, owner, namespaces, registry, pods, replicaSets }, projects);

  /** Asked for several times a second, and the same until something changes. */
  let known: { of: ObservedSets; byId: Map<string, SetInstance>; list: EngineInstance[] } | null = null;
  const instancesIn = (of: ObservedSets) => {
    if (known?.of !== of) {
      const all = [...of.values()].flatMap((set) => instancesOf(set.replicaSet, set.pods, observed.firstPullMessageOf));
      const byId = new Map(all.map((one) => [one.instance.id, one]));
      known = { of, byId, list: all.map(({ instance }) => instance) };
    }
    return known;
  };
  const find = async (id: string) => instancesIn(await observed.sets()).byId.get(id);

  /** Until its program runs, or it is clear why it does not. */
  const started = async (id: string, timeoutS: number): Promise<void> => {
    const now = (): EngineInstance | undefined => {
      const seen = observed.seen();
      return seen ? instancesIn(seen).byId.get(id)?.instance : undefined;
    };
    const isSettled = () => {
      const found = now();
      return found !== undefined && (found.state !== 'created' || isHopeless(found));
    };
    await observed.pods.until(isSettled, timeoutS * 1000);
    if (client.closing.aborted) throw new EngineError('unavailable', 'the connection to Kubernetes is closed');
    const found = now();
    if (found?.state !== 'created') return;
    const { failure } = found;
    if (failure) throw new EngineError('start_failed', failure.message, undefined, failure);
  };

  /** While it is being stopped, too: what it prints last is as good as the rest. */
  const followed = async (id: string): Promise<Followed | null> => {
    const all = await observed.sets();
    const pod = instancesIn(all).byId.get(id)?.pod;
    if (pod) {
      const { state, hasNextRun } = readPod(pod);
      return { pod, goesOn: state !== 'exited', previous: hasNextRun };
    }
    const leaving = [...all.values()].flatMap((set) => set.pods).findLast((other) => memberOf(other) === id);
    return leaving ? { pod: leaving, goesOn: hasRunning(leaving), previous: false } : null;
  };

  return {
    kind: 'kubernetes',
    publishesOn: null,
    async probe() {
      const query = { limit: 1, labelSelector: selectorOf(owner) };
      for (const kind of ['replicasets', 'pods'] as const) {
        await client.request({ path: pathOf(namespaces, kind), query, timeoutMs: probeMs });
      }
    },
    async prepare(image, _variables, access = { login: null, isKnown: false }) {
      // Nodes that have it need no registry; the others say so themselves.
      const known = access.isKnown ? parseImage(image)?.digest : null;
      if (known) return { digest: known };
      const { digest } = await registry.resolve(image, access.login).catch((error) => {
        throw access.mayBeLocal ? needsRegistry(error, nodesPull) : error;
      });
      const config = await registry.config(image, digest, access.login).catch(() => null);
      return { digest, ...(config && { exposed: config.ports }) };
    },
    keep(set, members) {
      const ids = members.map(({ id }) => id);
      if (ids.length === 0) return [];
      const kept = sets.keep(set, ids);
      const timeoutS = set.healthCheck?.start_timeout_s ?? defaultStartS;
      return ids.map((id) => kept.then(() => started(id, timeoutS)));
    },
    async list() {
      bindings.bindSoon();
      return instancesIn(await observed.sets()).list;
    },
    async stop(id, graceS, beforeRemoval) {
      const found = await find(id);
      if (found) await sets.stop(found, graceS, beforeRemoval);
      else await sets.ended(id, graceS, beforeRemoval);
    },
    drop: (setId) => sets.drop(setId),
    sets: async () => [...(await observed.sets()).keys()],
    async logs(id, { tail, sinceMs = 0, maxBytes = defaultLogBytes }) {
      if (tail <= 0) return [];
      const pod = (await find(id))?.pod;
      if (!pod) return [];
      // What runs again is not what ended.
      const previous = readPod(pod).hasNextRun;
      return readPodLog(client, pod, { tail, sinceMs, maxBytes, previous });
    },
    follow: (id, after, signal) => followPods(client, () => followed(id), after, signal),
    watch(onChange) {
      return observed.listen((object) => {
        const identity = object && setIdentityOf(object.metadata.labels);
        if (object === null) onChange(null);
        else if (identity) onChange({ project: identity.project, environment: identity.environment });
      });
    },
    async close() {
      bindings.stop();
      observed.stop();
      await Promise.all([client.close(), registry.close()]);
    },
  };
}

/** Waiting may still help where a node or room for it may come. */
const isHopeless = ({ failure }: EngineInstance): boolean =>
  failure !== undefined && failure.code !== 'unschedulable' && failure.code !== 'quota_exceeded';

/** The context that stands for the account of the pod that this service runs in. */
const inCluster = 'in-cluster';

/**
 * Opens the cluster that a region's setting names. `context`: null for the current one of the kubeconfig. An access
 * that cannot be read stops the start.
 */
export function openKubernetes(
  region: string,
  context: string | null,
  owner: string,
  { kubernetes, registryMirrors, log }: { kubernetes: KubernetesSettings; registryMirrors: Mirrors; log?: Log },
): Engine {
  let access: ClusterAccess;
  try {
    const { kubeconfig, ownServer, allowExec } = kubernetes;
    access = context === inCluster ? readInCluster(ownServer) : readKubeconfig(kubeconfig, { context, allowExec });
  } catch (error) {
    if (!(error instanceof AccessError)) throw error;
    throw new StartError(`SLUICE_REGIONS ${region}: ${error.message}`);
  }
  return createKubernetesEngine({
    access,
    installation: owner,
    namespaces: kubernetes.namespaces,
    routers: routersOf(kubernetes, context, access),
    registry: createRegistry({ mirrors: registryMirrors }),
    ...(log && { log: log.child({ region }) }),
  });
}

function routersOf({ routers }: KubernetesSettings, context: string | null, { namespace }: ClusterAccess): Routers[] {
  if (routers.length > 0 || context !== inCluster || namespace === null) return routers;
  return [{ namespace, labels: {} }];
}

const nodesPull = 'the nodes of a cluster pull images themselves, so push it to a registry that they reach';
