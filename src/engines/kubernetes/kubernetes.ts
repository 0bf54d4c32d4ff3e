// Kubernetes as an engine. It keeps sets (sets.ts); an instance, as the rest of the service knows it, is a set of one: the
// cluster replaces its pod where that was removed, evicted or lost with its node, even while this service is away.
import { parseImage } from '../../contract/image-reference.ts';
import { defaultLogBytes, type Engine, EngineError, type EngineInstance, type InstanceSpec } from '../engine.ts';
import type { Registry } from '../registry/registry.ts';
import type { ClusterAccess } from './api/access.ts';
import { connectKubernetes, type KubeClient } from './api/client.ts';
import type { WatchTimes } from './api/watch.ts';
import { pathOf } from './context.ts';
import type { InstanceSet } from './instance-set.ts';
import { type Followed, followPods } from './log/follow.ts';
import { readPodLog } from './log/read.ts';
import { ProjectNamespaces } from './namespaces.ts';
import { type Namespaces, selectorOf, whoseIs } from './objects/names.ts';
import type { Routers } from './objects/routers.ts';
import { Observed, type ObservedSets } from './observed.ts';
import { Sets } from './sets.ts';
import { currentPod, instanceOf } from './status/instance.ts';
import { hasRunning } from './status/pod.ts';

export interface KubernetesOptions {
  access: ClusterAccess;
  /** The installation and region that own what is made; those of others are neither listed nor changed. */
  installation: string;
  namespaces: Namespaces;
  routers: Routers[];
  registry: Registry;
  times?: WatchTimes;
}

const probeMs = 5_000;
/** Added to the grace period of a stop: the kubelet tells the API a little later that a pod is gone. */
const stopMarginMs = 30_000;
const defaultStartS = 60;

/** The sets of an installation, and what the cluster has of them. */
export function openSets(options: KubernetesOptions): { client: KubeClient; observed: Observed; sets: Sets } {
  const { installation: owner, namespaces, routers, registry } = options;
  const client = connectKubernetes(options.access);
  const observed = new Observed({ client, owner, namespaces, times: options.times });
  const { pods, replicaSets } = observed;
  const context = { client, owner, namespaces, routers, registry, pods, replicaSets };
  return { client, observed, sets: new Sets(context, new ProjectNamespaces(context)) };
}

export function createKubernetesEngine(options: KubernetesOptions): Engine {
  const { installation: owner, namespaces, registry } = options;
  const { client, observed, sets } = openSets(options);

  const instanceWith = (id: string): EngineInstance | null => {
    const set = observed.seen()?.get(id);
    return set ? instanceOf(set.replicaSet, set.pods, observed.firstPullMessageOf) : null;
  };

  /** Asked for several times a second, and the same until something changes. */
  let listed: { of: ObservedSets; instances: EngineInstance[] } | null = null;
  const instancesOf = (of: ObservedSets): EngineInstance[] =>
    [...of.values()].flatMap((set) => instanceOf(set.replicaSet, set.pods, observed.firstPullMessageOf) ?? []);

  /** Until its program runs, or it is clear why it does not. */
  const started = async (id: string, timeoutS: number): Promise<void> => {
    const isSettled = () => {
      const found = instanceWith(id);
      return found !== null && (found.state !== 'created' || isHopeless(found));
    };
    await observed.pods.until(isSettled, timeoutS * 1000);
    if (client.closing.aborted) throw new EngineError('unavailable', 'the connection to Kubernetes is closed');
    const found = instanceWith(id);
    if (found?.state !== 'created') return;
    const { failure } = found;
    if (failure) throw new EngineError('start_failed', failure.message, undefined, failure);
  };

  /** While it is being stopped, too: what it prints last is as good as the rest. */
  const followed = async (id: string): Promise<Followed | null> => {
    const set = (await observed.sets()).get(id);
    if (!set) return null;
    const current = currentPod(set.pods, observed.firstPullMessageOf);
    if (current) {
      const { state, hasNextRun } = current.reading;
      return { pod: current.pod, goesOn: state !== 'exited', previous: hasNextRun };
    }
    const leaving = set.pods.at(-1);
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
      const { digest } = await registry.resolve(image, access.login);
      const config = await registry.config(image, digest, access.login).catch(() => null);
      return { digest, ...(config && { exposed: config.ports }) };
    },
    async start(spec) {
      await sets.keep(setOf(spec), 1);
      await started(spec.id, spec.healthCheck?.start_timeout_s ?? defaultStartS);
    },
    async list() {
      const of = await observed.sets();
      if (listed?.of !== of) listed = { of, instances: instancesOf(of) };
      return listed.instances;
    },
    stop: (id, graceS, beforeRemoval) => sets.drop(id, graceS, stopMarginMs, beforeRemoval),
    async logs(id, { tail, sinceMs = 0, maxBytes = defaultLogBytes }) {
      if (tail <= 0) return [];
      const set = (await observed.sets()).get(id);
      const current = set && currentPod(set.pods, observed.firstPullMessageOf);
      if (!current) return [];
      // What runs again is not what ended.
      const previous = current.reading.hasNextRun;
      return readPodLog(client, current.pod, { tail, sinceMs, maxBytes, previous });
    },
    follow: (id, after, signal) => followPods(client, () => followed(id), after, signal),
    watch(onChange) {
      return observed.listen((object) => {
        const whose = object && whoseIs(object.metadata.labels);
        if (object === null) onChange(null);
        else if (whose) onChange({ project: whose.project, environment: whose.environment });
      });
    },
    async close() {
      observed.stop();
      await Promise.all([client.close(), registry.close()]);
    },
  };
}

/** Waiting may still help where a node or room for it may come. */
const isHopeless = ({ failure }: EngineInstance): boolean =>
  failure !== undefined && failure.code !== 'unschedulable' && failure.code !== 'quota_exceeded';

const setOf = (spec: InstanceSpec): InstanceSet => ({
  id: spec.id,
  project: spec.project,
  environment: spec.environment,
  revision: spec.revision,
  image: spec.image,
  digest: spec.digest,
  port: spec.port,
  variables: spec.variables,
  resources: spec.resources,
  healthCheck: spec.healthCheck ?? null,
  drainS: spec.drainS ?? 10,
  instanceName: spec.id,
  login: spec.login ?? null,
});
