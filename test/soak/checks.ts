// What must hold, as pure functions over what was recorded: each gives what breaks it.
import { createHash, createHmac } from 'node:crypto';
import type { Acknowledged, Facts, FailedVisit, FaultRecord } from './records.ts';

export const excuses = ['worker killed', 'worker stopped', 'service down', 'instances ended'] as const;
export type Excuse = (typeof excuses)[number];

/** How late a client, on a busy machine, may notice that a process is gone. */
const noticedWithinMs = 1000;
/** The same of a process that is known to have had its connection, and so can only be the cause. */
const itsOwnNoticedWithinMs = 10_000;

/** Why a visit was allowed to fail; null: for no reason. */
export function excuseOf(visit: FailedVisit, faults: FaultRecord[]): Excuse | null {
  const since = (withinMs: number) =>
    faults.filter(({ fromMs, toMs }) => fromMs <= visit.toMs && toMs + withinMs >= visit.fromMs);
  const during = since(noticedWithinMs);
  const here = during.filter(({ service }) => service === visit.service);
  const inWorker = (act: 'kill' | 'stop') =>
    here.some(({ kind, pid }) => kind === `${act} worker` && (visit.worker === null || visit.worker === pid));
  // Restarting or killing dockerd ends every instance; a connection to the router is not touched by it, unless a response
  // has begun, which then breaks off.
  // HAProxy closes a kept connection where an instance breaks off, so that its client decides whether to ask again.
  const isOfInstance =
    /^50[234] |^ECONNRESET aborted$/.test(visit.reason) ||
    (visit.plane === 'haproxy' && visit.reason.startsWith('ECONNRESET'));
  if (isOfInstance && during.some(({ kind }) => kind === 'restart docker' || kind === 'kill docker'))
    return 'instances ended';
  if (here.some(({ kind, takesRouter }) => kind.startsWith('kill') && takesRouter)) return 'service down';
  const diedWithIt = ({ kind, service, pid }: FaultRecord) =>
    kind === 'kill worker' && service === visit.service && pid === visit.worker;
  if (inWorker('kill') || since(itsOwnNoticedWithinMs).some(diedWithIt)) return 'worker killed';
  return inWorker('stop') ? 'worker stopped' : null;
}

export const failedForNoReason = (failed: FailedVisit[], faults: FaultRecord[]): string[] =>
  failed
    .filter((visit) => excuseOf(visit, faults) === null)
    .map(
      ({ service, site, worker, fromMs, toMs, reason }) =>
        `${new Date(fromMs).toISOString()} ${site} at ${service}, worker ${worker}, after ${toMs - fromMs} ms: ${reason}`,
    );

export function lost(acknowledged: Acknowledged[], { projects, deployments }: Facts): string[] {
  const known = new Set([...projects, ...deployments].map(({ id }) => id));
  return acknowledged
    .filter(({ id }) => !known.has(id))
    .map(({ what, id }) => `${what} ${id} was acknowledged and is gone`);
}

/** A POST that was sent again with its key is carried out once. */
export function doubled(keys: string[], { projects, deployments }: Facts): string[] {
  const counts = countBy([...projects.map(({ name }) => name), ...deployments.flatMap(({ note }) => note ?? [])]);
  return keys.filter((key) => (counts.get(key) ?? 0) > 1).map((key) => `"${key}" was carried out more than once`);
}

export function abortedInVain(acknowledged: Acknowledged[], { deployments }: Facts): string[] {
  const aborted = new Set(acknowledged.filter(({ what }) => what === 'abort').map(({ id }) => id));
  return deployments
    .filter(({ id, state }) => aborted.has(id) && state === 'succeeded')
    .map(({ id }) => `${id} succeeded although it was aborted`);
}

const ends = ['deployment.succeeded', 'deployment.failed'];

export function withoutOneEnd({ deployments, events }: Facts): string[] {
  const of = (types: string[]) =>
    countBy(events.filter(({ type }) => types.includes(type)).map(({ body }) => JSON.parse(body).data.id as string));
  const [created, ended] = [of(['deployment.created']), of(ends)];
  return deployments.flatMap(({ id, state, finished_at }) => [
    ...(finished_at === null ? [`${id} has not ended: ${state}`] : []),
    ...(created.get(id) === 1 ? [] : [`${id} was reported as created ${created.get(id) ?? 0} times`]),
    ...(finished_at === null || ended.get(id) === 1 ? [] : [`${id} was reported as ended ${ended.get(id) ?? 0} times`]),
  ]);
}

export function withGaps({ projects, events }: Facts): string[] {
  return projects.flatMap(({ id, next_sequence }) => {
    const sequences = events.filter(({ project_id }) => project_id === id).map(({ sequence }) => Number(sequence));
    sequences.sort((a, b) => a - b);
    const isWhole = sequences.every((sequence, i) => sequence === i + 1) && next_sequence === sequences.length + 1;
    return isWhole ? [] : [`the events of ${id} are ${sequences.join(' ')}, the next one ${next_sequence}`];
  });
}

/** Every event at every receiver, with the bytes that are stored and their signature; in order where that is promised. */
export function notDelivered({ events, receivers, unfinishedDeliveries }: Facts): string[] {
  const stored = new Map(events.map((event) => [event.id, event]));
  const hashes = new Map(events.map(({ id, body }) => [id, createHash('sha256').update(body).digest('hex')]));
  const wrong = receivers.flatMap(({ secret, isStrict, arrivals }, index) => {
    const name = `receiver ${index + 1}`;
    const arrived = new Set(arrivals.map(({ id }) => id));
    const first = [...arrived].flatMap((id) => stored.get(id) ?? []);
    return [
      ...events.filter(({ id }) => !arrived.has(id)).map(({ id, type }) => `${type} ${id} did not arrive at ${name}`),
      ...[...arrived].filter((id) => !stored.has(id)).map((id) => `${id} arrived at ${name} and is no event`),
      ...arrivals
        .filter(({ id, sha256 }) => stored.has(id) && hashes.get(id) !== sha256)
        .map(({ id }) => `${id} arrived at ${name} with other bytes`),
      ...arrivals
        .filter(({ id, signature }) => stored.has(id) && signatureOf(secret, stored.get(id)!.body) !== signature)
        .map(({ id }) => `${id} arrived at ${name} with a wrong signature`),
      ...(isStrict ? outOfOrder(first).map((id) => `${id} overtook another at ${name}`) : []),
    ];
  });
  return unfinishedDeliveries > 0 ? [...wrong, `${unfinishedDeliveries} deliveries have not succeeded`] : wrong;
}

const signatureOf = (secret: string, body: string): string => createHmac('sha256', secret).update(body).digest('hex');

function outOfOrder(events: Facts['events']): string[] {
  const last = new Map<string, number>();
  return events.flatMap(({ id, project_id, sequence }) => {
    const before = last.get(project_id) ?? 0;
    last.set(project_id, Math.max(before, Number(sequence)));
    return Number(sequence) < before ? [id] : [];
  });
}

export function orphans({ instanceRows, containers }: Facts): string[] {
  const rows = new Set(instanceRows.map(({ id }) => id));
  const running = new Set(containers.filter(({ state }) => state === 'running').map(({ id }) => id));
  return [
    ...containers.filter(({ id }) => !rows.has(id)).map(({ id, state }) => `container ${id} (${state}) has no row`),
    ...instanceRows
      .filter(({ id }) => !running.has(id))
      .map(({ id, state }) => `row ${id} (${state}) has no container that runs`),
  ];
}

export const wrongShares = ({ shares }: Facts): string[] =>
  shares
    .filter(({ percent }) => percent !== 100)
    .map(({ environment, percent }) => `${environment} serves ${percent} %`);

function countBy(values: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
