// What a pod says about its instance. No I/O.
import type { EngineEnd, EngineFailure, EngineInstance } from '../../engine.ts';
import type { ContainerStatus, Pod, Terminated } from '../api/objects.ts';
import { containerName } from '../objects/replica-set.ts';
import { endFailure, isPullReason, scheduleFailure, waitingFailure } from './reasons.ts';

export interface PodReading {
  /** `created`: its program does not run yet. */
  state: EngineInstance['state'];
  /** Asked to end: nobody counts on it any more. */
  isLeaving: boolean;
  /** It ended, or was ended, for reasons of the cluster: nobody is to blame, and the set has another. */
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
