// What Kubernetes says about a pod that does not run, as a code and a sentence that says what to do. No I/O.
import { parseImage } from '../../../contract/image-reference.ts';
import type { EngineFailure } from '../../engine.ts';
import { pullFault } from '../../pull-fault.ts';
import type { Condition, Terminated } from '../api/objects.ts';

const maxSaid = 400;

const said = (message: string | undefined): string => {
  const words = (message ?? '').trim().replace(/\s+/g, ' ').replace(/\.$/, '').slice(0, maxSaid);
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

export const isPullReason = (reason: string | undefined): boolean => pullReasons.has(reason ?? '');

/** Of a container that waits; null: it is on its way. */
export function waitingFailure(
  reason: string | undefined,
  message: string | undefined,
  image: string,
): EngineFailure | null {
  if (reason === 'InvalidImageName') {
    return { code: 'image_not_found', message: `${image} is no name of an image${said(message)}. Correct it.` };
  }
  if (isPullReason(reason)) return pullFailure(message ?? '', image);
  if (createReasons.has(reason ?? '')) return createFailure(message);
  return null;
}

function pullFailure(words: string, image: string): EngineFailure {
  const reference = parseImage(image);
  const fault = reference ? pullFault(reference, words, null) : 'image_not_found';
  // Every layer of a kubelet's message repeats the name.
  const message = words.replaceAll(image, 'it').replace(/^rpc error: code = \w+ desc = /, '');
  switch (fault) {
    case 'image_not_found':
      return { code: fault, message: `A node found no ${image}${said(message)}. Check its name and tag.` };
    case 'image_denied':
      return {
        code: fault,
        message: `A node may not pull ${image}${said(message)}. Add a login for its registry (POST /v1/registries).`,
      };
    default:
      return {
        code: 'registry_unreachable',
        message: `A node cannot pull ${image}${said(message)}. Check that the nodes reach its registry.`,
      };
  }
}

function createFailure(message = ''): EngineFailure {
  const advice = /runAsNonRoot|non-root|non-numeric user/.test(message)
    ? 'Give the image a USER that is a number other than 0.'
    : /(secret|configmap) .*not found/.test(message)
      ? 'Somebody removed what it needs: deploy again.'
      : 'Check the command, the user and the files of the image.';
  return { code: 'start_failed', message: `The container cannot be created${said(message)}. ${advice}` };
}

/** Of a program that ended. `limit`: of its memory, as Kubernetes writes it. */
export function endFailure({ exitCode, reason, message }: Terminated, limit: string | undefined): EngineFailure {
  if (reason === 'OOMKilled') {
    return {
      code: 'out_of_memory',
      message: `An instance used more memory than it may (${limit ?? 'its limit'}). Raise resources.memory_mb, or let it use less.`,
    };
  }
  if (startReasons.has(reason ?? '')) {
    return {
      code: 'start_failed',
      message: `The program cannot be started${said(message)}. Check the command, the user and the files of the image.`,
    };
  }
  return {
    code: 'crashed',
    message: `An instance ended with exit code ${exitCode}. The last lines of its log may say why.`,
  };
}

/** Of a pod that no node has taken. */
export function scheduleFailure(conditions: Condition[] = []): EngineFailure | null {
  const placed = conditions.find(({ type }) => type === 'PodScheduled');
  if (placed?.status !== 'False' || placed.reason !== 'Unschedulable') return null;
  return {
    code: 'unschedulable',
    message: `No node of the cluster has room for an instance${said(placed.message)}. Add nodes, or lower resources or replicas.`,
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
      message: `The namespace ${namespace} allows no more${said(message)}. Raise its ResourceQuota or LimitRange, or lower resources or replicas.`,
    };
  }
  const advice = /violates PodSecurity/.test(message)
    ? 'Give the image a USER that is a number other than 0, or let the namespace allow the baseline level.'
    : 'Ask those who run the cluster.';
  return { code: 'start_failed', message: `Kubernetes refuses to create an instance${said(message)}. ${advice}` };
}
