import type { DeliveryDetail } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { Scrolled } from '../components/display/scrolled.tsx';
import { Ago } from '../components/display/time.tsx';
import { ActionButton } from '../components/forms/actions.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, Shown } from '../components/layout/states.tsx';
import { pendingMs } from '../components/sections/deliveries.tsx';
import type { Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useRead } from '../use-read.ts';

export function DeliveryPage({ params }: { params: Params }) {
  const { whk, dlv } = params as { whk: string; dlv: string };
  const { client } = useSignedIn();
  const can = useCan();
  const delivery = useRead<DeliveryDetail>(`delivery/${dlv}`, (each) => each.deliveries.get(whk, dlv), {
    pollMs: (data) => pendingMs([data]),
  });
  return (
    <>
      <PageHead
        title={delivery.data?.event_type ?? 'Delivery'}
        trail={[
          ['/webhooks', 'Webhooks'],
          [`/webhooks/${whk}`, 'Webhook'],
        ]}
        actions={
          can('webhooks:write') && (
            <ActionButton
              className="main"
              run={() => client.deliveries.redeliver(whk, dlv)}
              done="Redelivery scheduled."
            >
              Redeliver
            </ActionButton>
          )
        }
      />
      <Shown of={delivery}>
        {(data) => (
          <>
            <section className="panel" aria-label="State">
              <dl className="facts">
                <dt>State</dt>
                <dd>
                  <Badge state={data.state} />
                </dd>
                <dt>Event</dt>
                <dd>
                  <code>{data.event_id}</code>
                </dd>
                <dt>Created</dt>
                <dd>
                  <Ago at={data.created_at} />
                </dd>
                {data.next_attempt_at && (
                  <>
                    <dt>Next attempt</dt>
                    <dd>
                      <Ago at={data.next_attempt_at} />
                    </dd>
                  </>
                )}
              </dl>
            </section>
            <Attempts attempts={data.attempts} />
            <section aria-labelledby="payload">
              <h2 id="payload">Payload</h2>
              {data.event_type === 'webhook.test' ? (
                <p className="hint">A test event has a type, a time and an ID, and no data.</p>
              ) : (
                <Payload event={data.event_id} />
              )}
            </section>
          </>
        )}
      </Shown>
    </>
  );
}

function Attempts({ attempts }: { attempts: DeliveryDetail['attempts'] }) {
  return (
    <section aria-labelledby="attempts">
      <h2 id="attempts">Attempts</h2>
      {attempts.length === 0 && <Empty title="Not sent yet.">The first attempt starts in a moment.</Empty>}
      <ol className="attempts">
        {attempts.map(({ number, at, duration_ms, status, error, answer }) => {
          const isGood = status !== null && status >= 200 && status < 300;
          return (
            <li key={number} className="panel">
              <p className="title-row">
                <strong>Attempt {number}</strong>
                <Badge state={isGood ? 'succeeded' : 'failed'}>
                  {status === null ? 'no response' : `HTTP ${status}`}
                </Badge>
                <span className="small">
                  {duration_ms} ms · <Ago at={at} />
                </span>
              </p>
              {error && <p>{error}</p>}
              {answer && <Scrolled label={`Response to attempt ${number}`}>{answer}</Scrolled>}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Payload({ event }: { event: string }) {
  const body = useRead(`event/${event}`, (client) => client.events.get(event));
  return (
    <Shown of={body}>{(data) => <Scrolled label="Payload as JSON">{JSON.stringify(data, null, 2)}</Scrolled>}</Shown>
  );
}
