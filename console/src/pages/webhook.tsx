import { useState } from 'react';
import type { Webhook } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { SecretOnce } from '../components/display/secret.tsx';
import { Ago } from '../components/display/time.tsx';
import { ActionButton, ConfirmButton } from '../components/forms/actions.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { tell } from '../components/layout/notices.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Shown } from '../components/layout/states.tsx';
import { Deliveries } from '../components/sections/deliveries.tsx';
import { invalidate } from '../read-cache.ts';
import { navigate, type Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useRead } from '../use-read.ts';
import { KindChoice, kindsIn } from './webhooks.tsx';

export function WebhookPage({ params }: { params: Params }) {
  const whk = params.whk!;
  const webhook = useRead<Webhook>(`webhook/${whk}`, (client) => client.webhooks.get(whk), { project: '*' });
  const can = useCan();
  return (
    <>
      <PageHead title={webhook.data?.url ?? 'Webhook'} trail={[['/webhooks', 'Webhooks']]} />
      <Shown of={webhook}>
        {(data) => (
          <>
            <Facts webhook={data} />
            {can('webhooks:write') && <Actions webhook={data} />}
            <Deliveries webhook={whk} />
            {can('webhooks:write') && <Change webhook={data} />}
          </>
        )}
      </Shown>
    </>
  );
}

function Facts({ webhook }: { webhook: Webhook }) {
  const { state, disabled_reason, failing_since, probe_at, events, ordering, description } = webhook;
  return (
    <section className="panel" aria-label="State">
      <dl className="facts">
        <dt>State</dt>
        <dd>
          <Badge state={state} /> {disabled_reason}
        </dd>
        {failing_since && (
          <>
            <dt>Failing</dt>
            <dd>
              since <Ago at={failing_since} />
              {probe_at && (
                <>
                  ; tried again <Ago at={probe_at} />
                </>
              )}
            </dd>
          </>
        )}
        <dt>Told of</dt>
        <dd>{events.includes('*') ? 'everything' : events.join(', ')}</dd>
        <dt>Order</dt>
        <dd>{ordering === 'strict' ? 'strict' : 'as fast as possible'}</dd>
        {description && (
          <>
            <dt>Description</dt>
            <dd>{description}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Actions({ webhook }: { webhook: Webhook }) {
  const { client } = useSignedIn();
  const [secret, setSecret] = useState<string | null>(null);
  const isEnabled = webhook.state === 'enabled';
  return (
    <section aria-label="Actions">
      <div className="row">
        <ActionButton
          className="main"
          disabled={!isEnabled}
          run={() => client.webhooks.test(webhook.id)}
          done="A test is on its way."
        >
          Send a test
        </ActionButton>
        <ActionButton run={() => client.webhooks.update(webhook.id, { state: isEnabled ? 'paused' : 'enabled' })}>
          {isEnabled ? 'Pause' : 'Enable'}
        </ActionButton>
        <ConfirmButton
          title="Rotate the secret?"
          about="A new secret signs from now on. For a day the header webhook-signature carries both, so that the receiver can change over."
          verb="Rotate"
          run={async () => setSecret((await client.webhooks.rotateSecret(webhook.id)).secret)}
        >
          Rotate the secret
        </ConfirmButton>
        <ConfirmButton
          title="Delete this webhook?"
          about="Nothing is sent to it any more, and its deliveries are forgotten."
          verb="Delete"
          run={async () => {
            await client.webhooks.delete(webhook.id);
            navigate('/webhooks');
          }}
          done="The webhook is deleted."
        >
          Delete
        </ConfirmButton>
      </div>
      {secret && <SecretOnce label="The new secret" secret={secret} about="Shown this once." />}
    </section>
  );
}

const hours = [
  ['1', 'the last hour'],
  ['24', 'the last day'],
  ['168', 'the last week'],
] as const;

function Change({ webhook }: { webhook: Webhook }) {
  const { client } = useSignedIn();
  const replay = async (data: FormData) => {
    const since = new Date(Date.now() - Number(data.get('hours')) * 3_600_000).toISOString();
    const only = textField(data, 'only') as 'failed' | 'missing';
    const { scheduled, has_more } = await client.webhooks.replay(webhook.id, { since, only });
    tell(`${scheduled} deliveries are on their way.${has_more ? ' There are more: replay again.' : ''}`);
  };
  const save = async (data: FormData) => {
    const description = textField(data, 'description') ?? null;
    await client.webhooks.update(webhook.id, { url: textField(data, 'url') ?? '', events: kindsIn(data), description });
    tell('Saved.');
    invalidate();
  };
  return (
    <section className="panel" aria-labelledby="change">
      <h2 id="change">Replay</h2>
      <p className="hint">Sends again what did not arrive.</p>
      <Form label="Replay" verb="Replay" submit={replay} keep>
        <div className="fields">
          <Select name="hours" label="Of" options={hours} />
          <Select
            name="only"
            label="What"
            options={[
              ['failed', 'what was given up'],
              ['missing', 'also what was never sent'],
            ]}
          />
        </div>
      </Form>
      <details>
        <summary>Edit</summary>
        <Form label="Edit" verb="Save" submit={save} keep>
          <div className="fields">
            <Input name="url" label="Address" type="url" defaultValue={webhook.url} />
            <Input name="description" label="Description" defaultValue={webhook.description ?? ''} />
          </div>
          <KindChoice chosen={webhook.events} />
        </Form>
      </details>
    </section>
  );
}
