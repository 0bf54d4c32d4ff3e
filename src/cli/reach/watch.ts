// Watching a deployment to its end: drawn in place on a terminal, a line for each thing that happens elsewhere.
import { clearInterval, setInterval } from 'node:timers';
import type { Sluice } from '../../client/index.ts';
import type { Deployment } from '../../contract/deployments.ts';
import type { CommandContext } from '../frame/command.ts';
import { exit } from '../io.ts';
import { Live } from '../terminal/live.ts';
import { columnsOf, painter } from '../terminal/output.ts';
import { liveLines, summaryLines, timelineLine } from './deployment-view.ts';

const redrawMs = 100;
const lookMs = 500;

/** Exit code 0 only where the deployment succeeded. Ctrl-C ends the watching, not the deployment. */
export async function watch(context: CommandContext, sluice: Sluice, first: Deployment): Promise<number> {
  const view = context.out.isLive ? liveView(context, first) : plainView(context);
  const { project_id, id } = first;
  let ended: Deployment;
  try {
    const options = { signal: context.signal, intervalMs: lookMs, onChange: view.show };
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
  const address = succeeded && !out.json ? await addressOf(sluice, ended) : null;
  out.result(ended, () => {
    for (const line of summaryLines(ended, address, out.paint)) out.line(line);
  });
  return succeeded ? exit.done : exit.failed;
}

/** A token that may deploy need not be one that may read environments. */
const addressOf = (sluice: Sluice, { project_id, environment }: Deployment): Promise<string | null> =>
  sluice.environments.get(project_id, environment).then(
    ({ url }) => url,
    () => null,
  );

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

function liveView({ io }: CommandContext, first: Deployment): View {
  const live = new Live(io.stderr);
  const paint = painter(io.env, io.stderr);
  let latest = first;
  let shown = 0;
  const draw = () => {
    const said = latest.timeline.slice(shown).map((entry) => timelineLine(entry, paint));
    shown = latest.timeline.length;
    live.draw(liveLines(latest, { now: io.now(), columns: columnsOf(io.stderr), paint }), said);
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
