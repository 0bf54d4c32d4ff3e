// What clients asked for and how they were answered. A write that was acknowledged must be there, one that was refused
// must not; one without an answer may be or not. Each write carries a mark that no other has.
import type { Facts } from './facts.ts';

export type Kind = 'project' | 'deployment' | 'webhook' | 'environment';
export type Answer = 'none' | 'acknowledged' | 'refused';

export interface Write {
  kind: Kind;
  /** The name of a project, the note of a deployment, the description of a webhook. */
  mark: string;
  answer: Answer;
  /** Of what was created. */
  id: string | null;
  projectId: string | null;
  /** Once somebody asked to delete it, or its project, it may be gone. */
  mayBeGone: boolean;
}

/** The lowest version that an acknowledged change promised. */
export interface PromisedVersion {
  kind: 'environment' | 'deployment';
  id: string;
  version: number;
}

/** An acknowledged write is there. */
export function findLostWrite(writes: Iterable<Write>, facts: Facts): string | null {
  const ids = idsOf(facts);
  for (const { kind, mark, answer, id, mayBeGone } of writes) {
    if (answer !== 'acknowledged' || mayBeGone || id === null) continue;
    if (!ids.has(id)) return `the ${kind} ${id} (${mark}) was acknowledged and is not there`;
  }
  return null;
}

/** A refused write is not there, and no write is there twice, however often it was sent. */
export function findWrongWrite(writes: Iterable<Write>, facts: Facts): string | null {
  const counts = new Map<string, number>();
  for (const mark of marksOf(facts)) counts.set(mark, (counts.get(mark) ?? 0) + 1);
  for (const { kind, mark, answer } of writes) {
    const count = counts.get(mark) ?? 0;
    if (answer === 'refused' && count > 0) return `the ${kind} ${mark} was refused and is there`;
    if (count > 1) return `the ${kind} ${mark} is there ${count} times`;
  }
  return null;
}

export function findLostVersion(promised: Iterable<PromisedVersion>, facts: Facts): string | null {
  const versions = new Map<string, number>();
  for (const { id, version } of facts.deployment) versions.set(id, version);
  for (const { project_id, name, version } of facts.environment) versions.set(`${project_id} ${name}`, version);
  for (const { kind, id, version } of promised) {
    const actual = versions.get(id);
    if (actual !== undefined && actual < version) return `${kind} ${id} is at ${actual}, ${version} was acknowledged`;
  }
  return null;
}

function idsOf(facts: Facts): Set<string> {
  const ids = new Set<string>();
  for (const { id } of facts.project) ids.add(id);
  for (const { id } of facts.deployment) ids.add(id);
  for (const { id, state } of facts.webhook) if (state !== 'deleted') ids.add(id);
  for (const { project_id, name } of facts.environment) ids.add(`${project_id} ${name}`);
  return ids;
}

function* marksOf(facts: Facts): Generator<string> {
  for (const { name } of facts.project) yield name;
  for (const { note } of facts.deployment) if (note !== null) yield note;
  for (const { description } of facts.webhook) if (description !== null) yield description;
}
