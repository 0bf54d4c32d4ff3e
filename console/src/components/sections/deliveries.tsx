import { useState } from 'react';
import type { Delivery } from '../../../../src/client/index.ts';
import { useList } from '../../use-read.ts';
import { Badge } from '../display/badge.tsx';
import { Ago } from '../display/time.tsx';
import { Link } from '../layout/link.tsx';
import { Empty, More, Shown } from '../layout/states.tsx';
import { Table } from '../layout/table.tsx';

/** No event announces the outcome of a delivery: poll while an attempt is due soon. */
export function pendingMs(deliveries: Delivery[]): number | null {
  const soon = deliveries.some(({ state, next_attempt_at }) => {
    return state === 'pending' && (next_attempt_at === null || Date.parse(next_attempt_at) < Date.now() + 60_000);
  });
  return soon ? 2000 : null;
}

export function Deliveries({ webhook }: { webhook: string }) {
  const [state, setState] = useState<Delivery['state'] | ''>('');
  const deliveries = useList<Delivery>(
    `deliveries/${webhook}/${state}`,
    (client, page) => client.deliveries.list(webhook, { ...page, ...(state && { state }) }).page(),
    { project: '*', pollMs: pendingMs },
  );
  return (
    <section aria-labelledby="deliveries">
      <div className="title-row">
        <h2 id="deliveries">Deliveries</h2>
        <select
          aria-label="Filter by state"
          value={state}
          onChange={(event) => setState(event.currentTarget.value as Delivery['state'] | '')}
        >
          <option value="">All</option>
          <option value="pending">Pending</option>
          <option value="succeeded">Succeeded</option>
          <option value="failed">Failed</option>
        </select>
      </div>
      <Shown of={deliveries}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No deliveries.">Send a test to check that the receiver responds.</Empty>
          ) : (
            <Table
              label="Deliveries"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                {
                  name: 'Event',
                  cell: ({ id, event_type }) => <Link to={`/webhooks/${webhook}/deliveries/${id}`}>{event_type}</Link>,
                },
                { name: 'State', cell: ({ state: each }) => <Badge state={each} /> },
                { name: 'Attempts', cell: ({ attempt_count }) => attempt_count },
                { name: 'Created', cell: ({ created_at }) => <Ago at={created_at} /> },
                {
                  name: 'Next attempt',
                  cell: ({ next_attempt_at }) => next_attempt_at && <Ago at={next_attempt_at} />,
                },
              ]}
            />
          )
        }
      </Shown>
      <More of={deliveries} />
    </section>
  );
}
