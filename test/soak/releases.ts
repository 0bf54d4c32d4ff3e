// What users do all the time: release, roll back, promote, pause and abort, in one project each, and create projects.
import { until } from '../helpers/wait.ts';
import type { Ledger } from './ledger.ts';
import type { Random } from './random.ts';

export interface Releases {
  project: string;
  name: string;
  /** Good images, and one whose instances exit. */
  images: string[];
  brokenImage: string;
}

/** A rollout may be held up by every fault there is, and by deadlines of its own. */
const endsWithinMs = 600_000;
const lookEveryMs = 1000;

const kinds = { rolling: 6, blue_green: 4, canary: 6, rollback: 2, broken: 1 };

/** Goes on until `isOver`; the last deployment has ended then. */
export async function release(ledger: Ledger, site: Releases, random: Random, isOver: () => boolean): Promise<void> {
  for (let n = 1; !isOver(); n++) {
    const key = `${site.name} ${n}`;
    const id = await begin(ledger, site, random.choose(kinds), key, random);
    if (id === null) {
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
      continue;
    }
    if (random.chance(0.5)) await intervene(ledger, site, id, key, random);
    await ended(ledger, site, id, isOver);
  }
}

/** Once it is over, a person decides of a canary of which all the faults left too little to tell: it would wait for half an hour. */
export async function ended(ledger: Ledger, { project }: Releases, id: string, isOver = () => false): Promise<string> {
  const path = `/v1/projects/${project}/deployments/${id}`;
  let asked = 0;
  return until(
    `deployment ${id} to end`,
    async () => {
      const { body } = await ledger.get(path);
      if (isOver() && body.state === 'canary')
        await ledger.post(`${path}/promote`, `${id} is decided ${++asked}`, undefined);
      return body.finished_at !== null && (body.state as string);
    },
    endsWithinMs,
    lookEveryMs,
  );
}

/** null: nothing began, because another deployment is in progress or there is nothing to roll back to. */
async function begin(
  ledger: Ledger,
  { project, images, brokenImage }: Releases,
  kind: keyof typeof kinds,
  key: string,
  random: Random,
): Promise<string | null> {
  const image = kind === 'broken' ? brokenImage : random.pick(images);
  ledger.keys.push(key);
  const { status, body } =
    kind === 'rollback'
      ? await ledger.post(
          `/v1/projects/${project}/environments/production/rollback`,
          key,
          { reason: key },
          'deployment',
        )
      : await ledger.post(
          `/v1/projects/${project}/deployments`,
          key,
          { environment: 'production', image, note: key, ...strategyOf(kind, random) },
          'deployment',
        );
  if (status === 201 || status === 200) return body.id;
  if (status === 409 || status === 422) return null;
  throw new Error(`${kind} was answered with ${status} ${JSON.stringify(body)}`);
}

function strategyOf(kind: string, random: Random): object {
  if (kind === 'broken') return { strategy: 'rolling' };
  return kind === 'canary' ? { strategy: kind, canary_percent: Math.ceil(random.between(0, 99)) } : { strategy: kind };
}

/** Somewhere on its way; a command that its state does not allow is refused. */
async function intervene(ledger: Ledger, site: Releases, id: string, key: string, random: Random): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, random.between(0, 8000)));
  const path = `/v1/projects/${site.project}/deployments/${id}`;
  const command = random.choose({ abort: 3, promote: 2, pause: 2 });
  const { status } = await ledger.post(
    `${path}/${command}`,
    `${key} ${command}`,
    undefined,
    command === 'abort' ? 'abort' : undefined,
  );
  if (command !== 'pause' || status >= 300) return;
  await new Promise((resolve) => setTimeout(resolve, random.between(500, 4000)));
  await ledger.post(`${path}/resume`, `${key} resume`, undefined);
}

/** Small changes, so that there is always one on its way when a process is killed. */
export async function createProjects(ledger: Ledger, everyMs: number, isOver: () => boolean): Promise<void> {
  for (let n = 1; !isOver(); n++) {
    const key = `Project ${n}`;
    ledger.keys.push(key);
    const { status, body } = await ledger.post('/v1/projects', key, { name: key }, 'project');
    if (status !== 201) throw new Error(`a project was answered with ${status} ${JSON.stringify(body)}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
