import { useState } from 'react';
import type { Webhook } from '../../../src/client/index.ts';
import { Badge } from '../components/display/badge.tsx';
import { SecretOnce } from '../components/display/secret.tsx';
import { Ago } from '../components/display/time.tsx';
import { ActionButton, ConfirmButton } from '../components/forms/actions.tsx';
import { DialogButton } from '../components/forms/dialog.tsx';
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
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <PageHead
        title={webhook.data?.url ?? 'Webhook'}
        trail={[['/webhooks', 'Webhooks']]}
        actions={webhook.data && can('webhooks:write') && <Actions webhook={webhook.data} onSecret={setSecret} />}
      />
      {secret && <SecretOnce label="New secret" secret={secret} about="Copy it now: it is not shown again." />}
      <Shown of={webhook}>
        {(data) => (
          <>
            <Facts webhook={data} />
            <Deliveries webhook={whk} />
          </>
        )}
      </Shown>
    </>
  );
}

function Facts({ webhook }: { webhook: Webhook }) {
  const { state, disabled_reason, failing_since, probe_at, events, ordering, description } = webhook;
  return (
    <dl className="facts across panel" aria-label="State">
      <div>
        <dt>State</dt>
        <dd>
          <Badge state={state} /> {disabled_reason}
        </dd>
      </div>
      {failing_since && (
        <div>
          <dt>Failing</dt>
          <dd>
            since <Ago at={failing_since} />
            {probe_at && (
              <>
                ; next attempt <Ago at={probe_at} />
              </>
            )}
          </dd>
        </div>
      )}
      <div>
        <dt>Events</dt>
        <dd>{events.includes('*') ? 'all' : events.join(', ')}</dd>
      </div>
      <div>
        <dt>Order</dt>
        <dd>{ordering === 'strict' ? 'one at a time, in sequence' : 'any'}</dd>
      </div>
      {description && (
        <div>
          <dt>Description</dt>
          <dd>{description}</dd>
        </div>
      )}
    </dl>
  );
}

interface ActionsProps {
  webhook: Webhook;
  onSecret(secret: string): void;
}

function Actions({ webhook, onSecret }: ActionsProps) {
  const { client } = useSignedIn();
  const isEnabled = webhook.state === 'enabled';
  const { host } = new URL(webhook.url);
  return (
    <>
      <DialogButton title={`Edit the webhook to ${host}`} label="Edit…" className="quiet">
        {(close) => <Edit webhook={webhook} onDone={close} />}
      </DialogButton>
      <DialogButton title="Replay deliveries" label="Replay…" className="quiet">
        {(close) => <Replay webhook={webhook} onDone={close} />}
      </DialogButton>
      <ConfirmButton
        title="Rotate the secret?"
        about="Deliveries are signed with a new secret from now on. For one day the header webhook-signature carries both signatures, so that the receiver can switch over."
        verb="Rotate"
        run={async () => onSecret((await client.webhooks.rotateSecret(webhook.id)).secret)}
      >
        Rotate secret
      </ConfirmButton>
      <ActionButton
        run={() => client.webhooks.update(webhook.id, { state: isEnabled ? 'paused' : 'enabled' })}
        done={isEnabled ? `Paused: events for ${host} wait.` : `Events are sent to ${host} again.`}
      >
        {isEnabled ? 'Pause' : 'Enable'}
      </ActionButton>
      <ConfirmButton
        title={`Delete the webhook to ${host}?`}
        mustType={host}
        className="quiet bad"
        about={
          <>
            <p>This cannot be undone.</p>
            <ul>
              <li>
                {webhook.url} gets no more {webhook.events.includes('*') ? 'events' : webhook.events.join(', ')}.
              </li>
              <li>What was not delivered yet is not sent, and the history of deliveries is deleted.</li>
            </ul>
          </>
        }
        verb="Delete webhook"
        run={async () => {
          await client.webhooks.delete(webhook.id);
          navigate('/webhooks');
        }}
        done={`Deleted the webhook to ${host}.`}
      >
        Delete
      </ConfirmButton>
      <ActionButton
        className="main"
        disabled={!isEnabled}
        run={() => client.webhooks.test(webhook.id)}
        done={`A test is being sent to ${host}.`}
      >
        Send test
      </ActionButton>
    </>
  );
}

const hours = [
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
] as const;

interface ChangeProps {
  webhook: Webhook;
  onDone(): void;
}

function Replay({ webhook, onDone }: ChangeProps) {
  const { client } = useSignedIn();
  const replay = async (data: FormData) => {
    const since = new Date(Date.now() - Number(data.get('hours')) * 3_600_000).toISOString();
    const only = textField(data, 'only') as 'failed' | 'missing';
    const { scheduled, has_more } = await client.webhooks.replay(webhook.id, { since, only });
    notify(`${scheduled} deliveries scheduled.${has_more ? ' There are more: replay again.' : ''}`);
    onDone();
  };
  return (
    <Form label="Replay" verb="Replay" submit={replay}>
      <p className="hint">Sends events again that were not delivered.</p>
      <Select name="hours" label="Period" options={hours} />
      <Select
        name="only"
        label="Deliveries"
        options={[
          ['failed', 'Failed'],
          ['missing', 'Failed and never sent'],
        ]}
      />
    </Form>
  );
}

function Edit({ webhook, onDone }: ChangeProps) {
  const { client } = useSignedIn();
  const save = async (data: FormData) => {
    const description = textField(data, 'description') ?? null;
    await client.webhooks.update(webhook.id, { url: textField(data, 'url') ?? '', events: kindsIn(data), description });
    notify(`Saved the webhook to ${new URL(textField(data, 'url') ?? webhook.url).host}.`);
    invalidate();
    onDone();
  };
  return (
    <Form label="Edit" verb="Save" submit={save}>
      <Input name="url" label="URL" type="url" defaultValue={webhook.url} />
      <Input name="description" label="Description" defaultValue={webhook.description ?? ''} />
      <EventKinds chosen={webhook.events} />
    </Form>
  );
}
