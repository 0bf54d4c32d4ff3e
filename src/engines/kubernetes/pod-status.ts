// What the status of a pod means for its instance: its state, its address and, where it does not run, a failure code
// with a sentence that says what to do. No I/O.
import { parseImage } from '../../contract/references.ts';
import type { EngineEnd, EngineFailure, EngineFault, EngineInstance } from '../engine.ts';
import { pullFault } from '../registry/registry-faults.ts';
import { publicReason } from '../registry/registry-reasons.ts';
import type { Condition, ContainerStatus, Pod, Terminated } from './kube-objects.ts';
import { containerName } from './manifests.ts';

interface PodReading {
  /** `created`: its program does not run yet. */
  state: EngineInstance['state'];
  /** It was asked to end. */
  isLeaving: boolean;
  /** It ended, or was ended, for reasons of the cluster, and the ReplicaSet replaces it. */
  isEvicted: boolean;
  /** By its health check, as the kubelet sees it. */
  ready: boolean;
  address: { host: string; port: number } | null;
  node: string | null;
  /** How often the kubelet started its program again. */
  restarts: number;
  /** It ended, and the kubelet has started its program again. */
  hasNextRun: boolean;
  /** How its program ended last. */
  ended: { exitCode: number; how: EngineEnd } | null;
  /** Why it does not run; null: it does, or is on its way. */
  failure: EngineFailure | null;
}

/** `firstPullMessage`: what was said of the pull before the kubelet began to back off. */
export function readPod(pod: Pod, firstPullMessage: string | null = null): PodReading {
  const { status = {}, spec, metadata } = pod;
  const own = status.containerStatuses?.find(({ name }) => name === containerName);
  const container = spec?.containers?.find(({ name }) => name === containerName);
  const isLeaving = metadata.deletionTimestamp !== undefined;
  const isEvicted = status.phase === 'Failed';
  const end = own?.state?.terminated ?? own?.lastState?.terminated ?? null;
  const ready = own?.ready === true && !isLeaving;
  // One that the kubelet started again is as one that ended, until it is up once more.
  const isUp = own?.state?.running !== undefined && (end === null || own.started === true || own.ready === true);
  const hasEnded = isEvicted || (end !== null && !isUp);
  const isRunning = isUp && !hasEnded;
  const port = container?.ports?.[0]?.containerPort;
  return {
    state: hasEnded ? 'exited' : isRunning ? 'running' : 'created',
    isLeaving,
    isEvicted,
    ready,
    address: isRunning && status.podIP && port ? { host: status.podIP, port } : null,
    node: spec?.nodeName ?? null,
    restarts: own?.restartCount ?? 0,
    hasNextRun: hasEnded && own?.state?.running !== undefined,
    ended: hasEnded && end ? endOf(end, container?.resources?.limits?.memory) : null,
    failure: isEvicted ? null : failureOf(pod, own, hasEnded ? end : null, firstPullMessage),
  };
}

function endOf({ exitCode, reason, finishedAt }: Terminated, limit = ''): NonNullable<PodReading['ended']> {
  const at = Date.parse(finishedAt ?? '');
  const isOutOfMemory = reason === 'OOMKilled';
  const how: EngineEnd = {
    at: Number.isNaN(at) ? null : at,
    reason: isOutOfMemory ? 'out_of_memory' : 'exited',
    memoryLimitMb: isOutOfMemory && /^\d+Mi$/.test(limit) ? Number.parseInt(limit, 10) : null,
  };
  return { exitCode, how };
}

function failureOf(
  { status, spec }: Pod,
  own: ContainerStatus | undefined,
  end: Terminated | null,
  firstPullMessage: string | null,
): EngineFailure | null {
  const container = spec?.containers?.find(({ name }) => name === containerName);
  if (end) return endFailure(end, container?.resources?.limits?.memory);
  const waiting = own?.state?.waiting;
  const message = isPullReason(waiting?.reason) ? (firstPullMessage ?? waiting?.message) : waiting?.message;
  return (
    waitingFailure(waiting?.reason, message, container?.image ?? 'the image') ?? scheduleFailure(status?.conditions)
  );
}

/** What the kubelet says of a pull that failed, before it backs off and says only that. */
export function pullMessage({ status }: Pod): string | null {
  const waiting = status?.containerStatuses?.find(({ name }) => name === containerName)?.state?.waiting;
  return waiting?.reason === 'ErrImagePull' ? (waiting.message ?? null) : null;
}

/** Whether its program runs, be it ready or asked to end. */
export const hasRunning = ({ status }: Pod): boolean =>
  status?.containerStatuses?.some(({ name, state }) => name === containerName && state?.running !== undefined) ?? false;

const maxSuffix = 400;

const suffixOf = (message: string | undefined): string => {
  const words = (message ?? '').trim().replace(/\s+/g, ' ').replace(/\.$/, '').slice(0, maxSuffix);
  return words === '' ? '' : `: ${words}`;
};

const pullReasons = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);
/** Those that say what failed; of the others only their message does. */
const pullReasonFaults: Record<string, EngineFault> = { RegistryUnavailable: 'registry_unreachable' };
const createReasons = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'PreCreateHookError',
  'PreStartHookError',
  'PostStartHookError',
]);
/** Ends of a container whose program never ran. */
const startReasons = new Set(['StartError', 'ContainerCannotRun']);

const isPullReason = (reason: string | undefined): boolean => pullReasons.has(reason ?? '');

/** Of a container that waits; null: it is on its way. */
function waitingFailure(reason: string | undefined, message: string | undefined, image: string): EngineFailure | null {
  if (reason === 'InvalidImageName') {
    return { code: 'image_not_found', message: `${image} is no name of an image${suffixOf(message)}. Correct it.` };
  }
  if (isPullReason(reason)) return pullFailure(reason!, message ?? '', image);
  if (createReasons.has(reason ?? '')) return createFailure(message);
  return null;
}

function pullFailure(reason: string, words: string, image: string): EngineFailure {
  const reference = parseImage(image);
  const fault = pullReasonFaults[reason] ?? (reference ? pullFault(reference, words, null) : 'image_not_found');
  // The rest of what a kubelet says may hold what an internal page answered.
  const message = publicReason(words) ?? '';
  switch (fault) {
    case 'image_not_found':
      return { code: fault, message: `A node found no ${image}${suffixOf(message)}. Check its name and tag.` };
    case 'image_denied':
      return {
        code: fault,
        message: `A node may not pull ${image}${suffixOf(message)}. Add a login for its registry (POST /v1/registries).`,
      };
    default:
      return {
        code: 'registry_unreachable',
        message: `A node cannot pull ${image}${suffixOf(message)}. Check that the nodes reach its registry.`,
      };
  }
}

function createFailure(message = ''): EngineFailure {
  const advice = /runAsNonRoot|non-root|non-numeric user/.test(message)
    ? 'Give the image a USER that is a number other than 0.'
    : /(secret|configmap) .*not found/.test(message)
      ? 'Somebody removed what it needs: deploy again.'
      : 'Check the command, the user and the files of the image.';
  return { code: 'start_failed', message: `The container cannot be created${suffixOf(message)}. ${advice}` };
}

/** Of a program that ended. `limit`: of its memory, as Kubernetes writes it. */
function endFailure({ exitCode, reason, message }: Terminated, limit: string | undefined): EngineFailure {
  if (reason === 'OOMKilled') {
    return {
      code: 'out_of_memory',
      message: `An instance used more memory than it may (${limit ?? 'its limit'}). Raise resources.memory_mb, or let it use less.`,
    };
  }
  if (startReasons.has(reason ?? '')) {
    return {
      code: 'start_failed',
      message: `The program cannot be started${suffixOf(message)}. Check the command, the user and the files of the image.`,
    };
  }
  return {
    code: 'crashed',
    message: `An instance ended with exit code ${exitCode}. The last lines of its log may say why.`,
  };
}

/** Of a pod that no node has taken. */
function scheduleFailure(conditions: Condition[] = []): EngineFailure | null {
  const placed = conditions.find(({ type }) => type === 'PodScheduled');
  if (placed?.status !== 'False' || placed.reason !== 'Unschedulable') return null;
  return {
    code: 'unschedulable',
    message: `No node of the cluster has room for an instance${suffixOf(placed.message)}. Add nodes, or lower resources or replicas.`,
  };
}

/** Of a ReplicaSet that may not create its pods. */
export function replicaFailure(conditions: Condition[] = [], namespace: string): EngineFailure | null {
  const failed = conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  if (!failed) return null;
  const { message = '' } = failed;
  if (/exceeded quota|must specify (limits|requests)|(maximum|minimum) (cpu|memory) usage/.test(message)) {
    return {
      code: 'quota_exceeded',
      message: `The namespace ${namespace} allows no more${suffixOf(message)}. Raise its ResourceQuota or LimitRange, or lower resources or replicas.`,
    };
  }
  const advice = /violates PodSecurity/.test(message)
    ? 'Give the image a USER that is a number other than 0, or let the namespace allow the baseline level.'
    : 'Ask those who run the cluster.';
  return { code: 'start_failed', message: `Kubernetes refuses to create an instance${suffixOf(message)}. ${advice}` };
}
