import { useState } from 'react';
import type { Webhook } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { SecretOnce } from '../components/display/secret.tsx';
import { Ago } from '../components/display/time.tsx';
import { ActionButton, ConfirmButton } from '../components/forms/actions.tsx';
import { Form, Input, Select, textField } from '../components/forms/form.tsx';
import { notify } from '../components/layout/notices.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Shown } from '../components/layout/states.tsx';
import { Deliveries } from '../components/sections/deliveries.tsx';
import { invalidate } from '../read-cache.ts';
import { navigate, type Params } from '../router.ts';
import { useCan, useSignedIn } from '../session.ts';
import { useRead } from '../use-read.ts';
import { EventKinds, kindsIn } from './webhooks.tsx';

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
                  ; next attempt <Ago at={probe_at} />
                </>
              )}
            </dd>
          </>
        )}
        <dt>Events</dt>
        <dd>{events.includes('*') ? 'all' : events.join(', ')}</dd>
        <dt>Ordering</dt>
        <dd>{ordering === 'strict' ? 'strict' : 'none'}</dd>
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
          done="Test scheduled."
        >
          Send test
        </ActionButton>
        <ActionButton run={() => client.webhooks.update(webhook.id, { state: isEnabled ? 'paused' : 'enabled' })}>
          {isEnabled ? 'Pause' : 'Enable'}
        </ActionButton>
        <ConfirmButton
          title="Rotate the secret?"
          about="Deliveries are signed with a new secret from now on. For one day the header webhook-signature carries both signatures, so that the receiver can switch over."
          verb="Rotate"
          run={async () => setSecret((await client.webhooks.rotateSecret(webhook.id)).secret)}
        >
          Rotate secret
        </ConfirmButton>
        <ConfirmButton
          title="Delete this webhook?"
          about="Sending stops, and the history of deliveries is deleted."
          verb="Delete"
          run={async () => {
            await client.webhooks.delete(webhook.id);
            navigate('/webhooks');
          }}
          done="Webhook deleted."
        >
          Delete
        </ConfirmButton>
      </div>
      {secret && <SecretOnce label="New secret" secret={secret} about="Copy it now: it is not shown again." />}
    </section>
  );
}

const hours = [
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
] as const;

function Change({ webhook }: { webhook: Webhook }) {
  const { client } = useSignedIn();
  const replay = async (data: FormData) => {
    const since = new Date(Date.now() - Number(data.get('hours')) * 3_600_000).toISOString();
    const only = textField(data, 'only') as 'failed' | 'missing';
    const { scheduled, has_more } = await client.webhooks.replay(webhook.id, { since, only });
    notify(`${scheduled} deliveries scheduled.${has_more ? ' There are more: replay again.' : ''}`);
  };
  const save = async (data: FormData) => {
    const description = textField(data, 'description') ?? null;
    await client.webhooks.update(webhook.id, { url: textField(data, 'url') ?? '', events: kindsIn(data), description });
    notify('Saved.');
    invalidate();
  };
  return (
    <section className="panel" aria-labelledby="change">
      <h2 id="change">Replay</h2>
      <p className="hint">Resends events that were not delivered.</p>
      <Form label="Replay" verb="Replay" submit={replay} keep>
        <div className="fields">
          <Select name="hours" label="Period" options={hours} />
          <Select
            name="only"
            label="Deliveries"
            options={[
              ['failed', 'Failed'],
              ['missing', 'Failed and never sent'],
            ]}
          />
        </div>
      </Form>
      <details>
        <summary>Edit</summary>
        <Form label="Edit" verb="Save" submit={save} keep>
          <div className="fields">
            <Input name="url" label="URL" type="url" defaultValue={webhook.url} />
            <Input name="description" label="Description" defaultValue={webhook.description ?? ''} />
          </div>
          <EventKinds chosen={webhook.events} />
        </Form>
      </details>
    </section>
  );
}
