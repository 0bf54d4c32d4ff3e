import { useState } from 'react';
import { invalidate } from '../../read-cache.ts';
import { useRead } from '../../use-read.ts';
import { Scrolled } from '../display/scrolled.tsx';
import { Empty, Shown } from '../layout/states.tsx';

const tail = 200;
const followMs = 2000;
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hour12: false });

interface Line {
  at: string;
  instance: string;
  stream: string;
  text: string;
}

export function Logs({ project, deployment }: { project: string; deployment: string }) {
  const [isFollowing, setFollowing] = useState(false);
  const lines = useRead<Line[]>(
    `logs/${deployment}`,
    async (client) => (await client.deployments.logs(project, deployment, { tail })).data,
    { project, pollMs: () => (isFollowing ? followMs : null) },
  );
  const follow = (on: boolean) => {
    setFollowing(on);
    invalidate();
  };
  return (
    <section aria-labelledby="logs">
      <div className="title-row">
        <h2 id="logs">Logs</h2>
        <label className="check">
          <input type="checkbox" checked={isFollowing} onChange={(event) => follow(event.currentTarget.checked)} />
          <span>Follow</span>
        </label>
      </div>
      <Shown of={lines}>
        {(data) =>
          data.length === 0 ? (
            <Empty title="No log lines." command={`npx sluice logs ${deployment} --project ${project} --follow`}>
              The output of running instances appears here.
            </Empty>
          ) : (
            <Lines lines={data} isFollowing={isFollowing} />
          )
        }
      </Shown>
    </section>
  );
}

function Lines({ lines, isFollowing }: { lines: Line[]; isFollowing: boolean }) {
  return (
    <Scrolled label="Log lines" atEnd={isFollowing}>
      {lines.map(({ at, instance, stream, text }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no id
        <span key={index} className={`log ${stream}`}>
          <time dateTime={at}>{clock.format(new Date(at))}</time> <i title={instance}>{instance.slice(-6)}</i> {text}
          {'\n'}
        </span>
      ))}
    </Scrolled>
  );
}
