// What the analysis of a canary needs to know of requests beyond their number: whose they were, which kind of path they asked
// for, and which instance they went to. Counted while a canary runs. No I/O.
import { emptyLatency } from './latency.ts';

/** What one revision answered in some time, or in one bucket. */
export interface Answered {
  requests: number;
  errors: number;
  clientErrors: number;
  latency: readonly number[];
  detail?: Detail;
}

/** Whose requests they were, and where they went: counted while a canary runs, for its analysis. */
export interface Detail {
  /** By group of visitors (`groupOf`). */
  groups: Record<number, { requests: number; failed: number; clientErrors: number; latency: number[] }>;
  /** By kind of path (`routeOf`); `groups`: which groups saw one fail, a bit for each. */
  routes: Record<number, { requests: number; failed: number; groups: [number, number]; example: string | null }>;
  instances: Record<string, { requests: number; failed: number }>;
  /** Buckets of visitors that saw a failure, the first few. */
  failing: number[];
  /** Requests whose visitor went away after a long wait for an answer. They are no errors, but failed all the same. */
  abandoned: number;
  /** Requests that waited for an answer when this was last counted, by how long they had been waiting. */
  waiting: number[];
}

/** How a request ended, as far as it counts. */
export type Outcome = 'ok' | 'client_error' | 'error' | 'abandoned';

/** A visitor that goes away after so long did not get what it came for. */
export const abandonedAfterMs = 2000;

/** Whose request it was, and where it went. */
export interface Unit {
  /** Of the visitor (traffic/balance.ts). */
  bucket: number;
  /** The kind of path (`routePattern`). */
  pattern: string;
  instance: string;
}

/** So many kinds of path and groups of visitors are told apart, and so many failing visitors. */
export const routeCount = 16;
export const groupCount = 64;
const failingKept = 4;

/** Visitors of a group are on the same side of a canary or the other by nothing but chance. */
export const groupOf = (bucket: number): number => bucket % groupCount;

const longestSegment = 24;
const readable = /^[A-Za-z][A-Za-z._~-]*$/;

/** The kind of path: its first two parts, without what looks like an id. */
export function routePattern(path: string): string {
  const end = path.search(/[?#]/);
  const parts = (end === -1 ? path : path.slice(0, end)).split('/', 4).slice(1, 3);
  return `/${parts.map((part) => (part === '' || (part.length <= longestSegment && readable.test(part)) ? part : '*')).join('/')}`;
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

export const routeOf = (pattern: string): number => hashOf(pattern) % routeCount;

export const noDetail = (): Detail => ({
  groups: {},
  routes: {},
  instances: {},
  failing: [],
  abandoned: 0,
  waiting: [],
});

function placesOf(detail: Detail, { bucket, pattern, instance }: Unit) {
  const group = groupOf(bucket);
  const route = routeOf(pattern);
  detail.groups[group] ??= { requests: 0, failed: 0, clientErrors: 0, latency: emptyLatency() };
  detail.routes[route] ??= { requests: 0, failed: 0, groups: [0, 0], example: null };
  detail.instances[instance] ??= { requests: 0, failed: 0 };
  return { group: detail.groups[group], route: detail.routes[route], instance: detail.instances[instance] };
}

export function addToDetail(detail: Detail, unit: Unit, outcome: Outcome, latency: number): void {
  const { group, route, instance } = placesOf(detail, unit);
  group.requests++;
  group.latency[latency]!++;
  route.requests++;
  instance.requests++;
  if (outcome === 'client_error') group.clientErrors++;
  if (outcome === 'abandoned') detail.abandoned++;
  if (outcome === 'error' || outcome === 'abandoned') addFailure(detail, unit);
}

export function addFailure(detail: Detail, unit: Unit): void {
  const { group, route, instance } = placesOf(detail, unit);
  group.failed++;
  route.failed++;
  instance.failed++;
  const bit = groupOf(unit.bucket);
  route.groups[bit >> 5]! |= 1 << (bit & 31);
  route.example ??= unit.pattern;
  if (detail.failing.length < failingKept && !detail.failing.includes(unit.bucket)) detail.failing.push(unit.bucket);
}

/** Latencies of a group are few: pairs of a bucket and its count. */
const sparse = (latency: readonly number[]): number[] => latency.flatMap((count, i) => (count === 0 ? [] : [i, count]));

export function encodeDetail({ groups, routes, instances, failing, abandoned, waiting }: Detail): string {
  const of = <T>(all: Record<string, T>, encode: (one: T) => unknown) =>
    Object.fromEntries(Object.entries(all).map(([key, one]) => [key, encode(one)]));
  return JSON.stringify({
    g: of(groups, (one) => [one.requests, one.failed, one.clientErrors, ...sparse(one.latency)]),
    r: of(routes, (one) => [one.requests, one.failed, ...one.groups, one.example]),
    i: of(instances, (one) => [one.requests, one.failed]),
    f: failing,
    a: abandoned,
    w: sparse(waiting),
  });
}

interface Encoded {
  g: Record<number, number[]>;
  r: Record<number, [number, number, number, number, string | null]>;
  i: Record<string, [number, number]>;
  f: number[];
  a: number;
  w: number[];
}

export function decodeDetail(text: string): Detail {
  const { g, r, i, f, a, w } = JSON.parse(text) as Encoded;
  const of = <T, U>(all: Record<string, T>, decode: (one: T) => U) =>
    Object.fromEntries(Object.entries(all).map(([key, one]) => [key, decode(one)]));
  const dense = (pairs: readonly number[]): number[] => {
    const latency = emptyLatency();
    for (let at = 0; at < pairs.length; at += 2) latency[pairs[at]!] = pairs[at + 1]!;
    return latency;
  };
  return {
    groups: of(g, ([requests, failed, clientErrors, ...latency]) => ({
      ...{ requests: requests!, failed: failed!, clientErrors: clientErrors! },
      latency: dense(latency),
    })),
    routes: of(r, ([requests, failed, low, high, example]) => ({ requests, failed, groups: [low, high], example })),
    instances: of(i, ([requests, failed]) => ({ requests, failed })),
    failing: f,
    abandoned: a,
    waiting: dense(w),
  };
}

/** `sign` 1 adds what another router counted, -1 takes off what was counted before. */
export function combineDetail(one: Detail, other: Detail, sign: 1 | -1): Detail {
  const number = (a = 0, b = 0) => Math.max(0, a + sign * b);
  const each = <T extends object>(a: Record<string, T>, b: Record<string, T>, combine: (a?: T, b?: T) => T) =>
    Object.fromEntries(
      [...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [key, combine(a[key], b[key])]),
    );
  const latency = (a: readonly number[] = [], b: readonly number[] = []) =>
    emptyLatency().map((_, i) => number(a[i], b[i]));
  return {
    groups: each(one.groups, other.groups, (a, b) => ({
      requests: number(a?.requests, b?.requests),
      failed: number(a?.failed, b?.failed),
      clientErrors: number(a?.clientErrors, b?.clientErrors),
      latency: latency(a?.latency, b?.latency),
    })),
    routes: each(one.routes, other.routes, (a, b) => ({
      requests: number(a?.requests, b?.requests),
      failed: number(a?.failed, b?.failed),
      groups:
        sign === 1
          ? ([0, 1].map((word) => (a?.groups[word] ?? 0) | (b?.groups[word] ?? 0)) as [number, number])
          : (a?.groups ?? [0, 0]),
      example: a?.example ?? (sign === 1 ? (b?.example ?? null) : null),
    })),
    instances: each(one.instances, other.instances, (a, b) => ({
      requests: number(a?.requests, b?.requests),
      failed: number(a?.failed, b?.failed),
    })),
    failing:
      sign === 1
        ? [...new Set([...one.failing, ...other.failing])].slice(0, failingKept)
        : one.failing.filter((bucket) => !other.failing.includes(bucket)),
    abandoned: number(one.abandoned, other.abandoned),
    waiting: sign === 1 ? latency(one.waiting, other.waiting) : one.waiting,
  };
}
