// Watching a deployment to its end: told in stages and drawn in place on a terminal, a line for each thing that happens
// elsewhere. What the lines say is in rollout-story.ts.
import { clearInterval, setInterval } from 'node:timers';
import type { Sluice } from '../../client/index.ts';
import type { Deployment } from '../../contract/deployments.ts';
import type { Environment } from '../../contract/environments.ts';
import type { Instance } from '../../contract/instances.ts';
import { take } from '../choose-target.ts';
import type { CommandContext } from '../frame/command.ts';
import { exit } from '../io.ts';
import { Live } from '../terminal/live.ts';
import { columnsOf, painter } from '../terminal/output.ts';
import { pastLines, presentLines, type Stage, stagesOf, summaryLines, timelineLine } from './rollout-story.ts';

const redrawMs = 100;
const pollMs = 500;
const instancesPollMs = 1000;

/** Exit code 0 only where the deployment succeeded. Ctrl-C ends the watching, not the deployment. */
export async function watch(context: CommandContext, sluice: Sluice, first: Deployment): Promise<number> {
  const view = context.out.isLive ? liveView(context, sluice, first) : plainView(context);
  const { project_id, id } = first;
  let ended: Deployment;
  try {
    const options = { signal: context.signal, intervalMs: pollMs, onChange: view.show };
    ended = await sluice.waitFor(project_id, id, options);
  } catch (error) {
    if (!context.signal.aborted) throw error;
    view.end();
    context.out.note(`The deployment goes on. Watch it again: sluice deployments watch ${id} --project ${project_id}`);
    return exit.interrupted;
  } finally {
    view.end();
  }
  return conclude(context, sluice, ended);
}

async function conclude({ out }: CommandContext, sluice: Sluice, ended: Deployment): Promise<number> {
  const succeeded = ended.state === 'succeeded';
  const environment = out.json ? null : await readEnvironment(sluice, ended);
  out.result(ended, () => {
    for (const line of summaryLines(ended, environment, out)) out.line(line);
  });
  return succeeded ? exit.done : exit.failed;
}

/** A token that may deploy need not be one that may read environments. */
const readEnvironment = (sluice: Sluice, { project_id, environment }: Deployment): Promise<Environment | null> =>
  sluice.environments.get(project_id, environment).catch(() => null);

interface View {
  show(deployment: Deployment): void;
  end(): void;
}

function plainView({ io, out }: CommandContext): View {
  const paint = painter(io.env, io.stderr);
  let shown = 0;
  return {
    show({ timeline }) {
      if (!out.json) for (const entry of timeline.slice(shown)) out.note(timelineLine(entry, paint));
      shown = timeline.length;
    },
    end() {},
  };
}

function liveView({ io, signal }: CommandContext, sluice: Sluice, first: Deployment): View {
  const live = new Live(io.stderr);
  const paint = painter(io.env, io.stderr);
  let latest = first;
  let policy: Environment['canary'] | null = null;
  let instances: Instance[] | null = null;
  let askedAt = 0;
  let shown = 0;
  void readEnvironment(sluice, first).then((environment) => {
    policy = environment?.canary ?? null;
  });
  const askForInstances = ({ state }: Stage) => {
    if ((state !== 'starting' && state !== 'promoting') || io.now() - askedAt < instancesPollMs) return;
    askedAt = io.now();
    const all = sluice.instances.list(latest.project_id, latest.environment, {}, { signal });
    void take(all, 100).then(
      (found) => {
        instances = found.filter(({ revision }) => revision === latest.revision);
      },
      () => {
        askedAt = Number.POSITIVE_INFINITY;
      },
    );
  };
  const draw = () => {
    const stages = stagesOf(latest.timeline);
    const scene = { now: io.now(), columns: columnsOf(io.stderr), paint, policy, instances };
    const past = stages.filter(({ until }) => until !== null);
    const above = past.slice(shown).flatMap((stage) => pastLines(stage, latest, scene));
    shown = past.length;
    const present = stages[past.length];
    if (present) askForInstances(present);
    live.draw(present ? presentLines(present, latest, scene) : [], above);
  };
  const timer = setInterval(draw, redrawMs);
  return {
    show(deployment) {
      latest = deployment;
      draw();
    },
    end() {
      clearInterval(timer);
      live.end();
    },
  };
}
