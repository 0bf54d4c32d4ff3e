// What happened, over all projects: the events that webhooks receive.
import { useState } from 'react';
import type { EventKind } from '../../../src/client/index.ts';
import { PageHead } from '../components/layout/page-head.tsx';
import { EventTimeline } from '../components/sections/event-timeline.tsx';
import { eventKindNames } from './webhooks.tsx';

export function EventsPage() {
  const [type, setType] = useState<EventKind | ''>('');
  return (
    <>
      <PageHead
        title="Events"
        actions={
          <select
            aria-label="Filter by kind"
            value={type}
            onChange={(event) => setType(event.currentTarget.value as EventKind | '')}
          >
            <option value="">All kinds</option>
            {Object.entries(eventKindNames).map(([kind, name]) => (
              <option key={kind} value={kind}>
                {name}
              </option>
            ))}
          </select>
        }
      />
      <EventTimeline type={type} />
    </>
  );
}
