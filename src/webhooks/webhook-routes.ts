import type { Quotas } from '../accounts/quotas.ts';
import type { Of } from '../contract/declare.ts';
import { ApiError } from '../contract/errors.ts';
import { allows, type Caller } from '../contract/scopes.ts';
import * as contract from '../contract/webhooks.ts';
import { type ServedRoute, serve } from '../http/api/served-route.ts';
import type { AddressPolicy } from '../lib/address.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdSource } from '../lib/ids.ts';
import type { Seal } from '../lib/seal.ts';
import { requireProject } from '../projects/project-queries.ts';
import { publish } from '../signals/signals.ts';
import { deliveryRoutes } from './delivery-routes.ts';
import { well } from './endpoint-health.ts';
import { AddressRefused, type Lookup, resolveAllowed } from './receiver-addresses.ts';
import { newSecret, OpenedSecrets, sealSecret } from './signed-request.ts';
import {
  insertWebhook,
  listWebhooks,
  presentWebhook,
  requireWebhook,
  updateWebhook,
  type WebhookRow,
} from './webhook-queries.ts';

const defaultOverlapS = 86_400;

interface WebhookParts {
  ids: IdSource;
  clock: Clock;
  seal: Seal;
  quotas: Quotas;
  policy: AddressPolicy;
  lookup: Lookup;
}

export function webhookRoutes(parts: WebhookParts): ServedRoute[] {
  return [...registrationRoutes(parts), rotationRoute(parts), ...deliveryRoutes(parts)];
}

function registrationRoutes({ ids, clock, seal, quotas, policy, lookup }: WebhookParts): ServedRoute[] {
  const checkSubscription = async ({ caller, body }: { caller: Caller; body: { url?: string; events?: unknown } }) => {
    if (body.url !== undefined || body.events !== undefined) requireReader(caller);
    await refuseAddress(body.url, policy, lookup);
  };
  return [
    serve(contract.listWebhooks, async (call, db) => {
      const { rows, searchedTo } = await listWebhooks(db, call.caller, call.query.search, call.page);
      return { body: call.paginate(rows, (row) => row.id, presentWebhook, searchedTo) };
    }),

    serve(
      contract.createWebhook,
      async (call, tx) => {
        const { body, caller } = call;
        if (body.project_id == null) refuseBoundToken(caller);
        else await requireProject(tx, caller, body.project_id);
        const id = ids('whk');
        const secret = newSecret();
        const row = newRow(id, caller.accountId, body, sealSecret(seal, id, secret), clock.now());
        await quotas.within(tx, caller.accountId, ['webhooks'], () => insertWebhook(tx, row));
        return {
          body: { ...presentWebhook(row), secret },
          version: row.version,
          location: `/webhooks/${id}`,
          ...(row.project_id && { projectId: row.project_id }),
        };
      },
      checkSubscription,
    ),

    serve(contract.getWebhook, async (call, db) => {
      const row = await requireWebhook(db, call.caller, call.params.whk);
      return { body: presentWebhook(row), version: row.version };
    }),

    serve(
      contract.updateWebhook,
      async (call, tx) => {
        const row = await requireWebhook(tx, call.caller, call.params.whk);
        call.expectVersion(row.version);
        const changed = changesTo(row, call.body, clock.now());
        await updateWebhook(tx, row, changed);
        publish(tx, 'deliveries', null);
        return {
          body: presentWebhook({ ...row, ...changed }),
          before: presentWebhook(row),
          version: row.version + 1,
        };
      },
      checkSubscription,
    ),

    serve(contract.deleteWebhook, async (call, tx) => {
      const row = await requireWebhook(tx, call.caller, call.params.whk);
      call.expectVersion(row.version);
      await updateWebhook(tx, row, { state: 'deleted', secret_sealed: '', old_secret_sealed: null });
      publish(tx, 'removals', null);
      return { body: undefined, before: presentWebhook(row) };
    }),
  ];
}

function rotationRoute({ clock, seal }: WebhookParts): ServedRoute {
  const secrets = new OpenedSecrets(seal);
  return serve(contract.rotateSecret, async (call, tx) => {
    const row = await requireWebhook(tx, call.caller, call.params.whk);
    const overlapS = call.body.overlap_s ?? defaultOverlapS;
    const secret = newSecret();
    const old = sealSecret(seal, row.id, secrets.open(row.id, row.secret_sealed));
    const nowMs = clock.now();
    const changed = {
      secret_sealed: sealSecret(seal, row.id, secret),
      old_secret_sealed: overlapS > 0 ? old : null,
      old_secret_until: overlapS > 0 ? nowMs + overlapS * 1000 : null,
      updated_at: nowMs,
    };
    await updateWebhook(tx, row, changed);
    const shown = { ...presentWebhook(row), secret };
    return { body: shown, before: shown, changedSecrets: ['secret'], version: row.version + 1 };
  });
}

function newRow(
  id: string,
  accountId: string,
  body: Of<typeof contract.createWebhook.body>,
  secretSealed: string,
  nowMs: number,
): WebhookRow {
  return {
    id,
    account_id: accountId,
    project_id: body.project_id ?? null,
    url: normalized(body.url),
    events: JSON.stringify(body.events),
    description: body.description ?? null,
    ordering: body.ordering ?? 'none',
    state: 'enabled',
    disabled_reason: null,
    secret_sealed: secretSealed,
    old_secret_sealed: null,
    old_secret_until: null,
    next_position: 1,
    failures: well.failures,
    failing_since: well.failingSince,
    probe_at: well.probeAt,
    created_at: nowMs,
    updated_at: nowMs,
    version: 1,
  };
}

/** Enabling a webhook also closes its breaker. */
function changesTo(row: WebhookRow, body: Of<typeof contract.updateWebhook.body>, nowMs: number) {
  return {
    url: body.url === undefined ? row.url : normalized(body.url),
    events: body.events === undefined ? row.events : JSON.stringify(body.events),
    description: body.description === undefined ? row.description : body.description,
    ordering: body.ordering ?? row.ordering,
    updated_at: nowMs,
    ...(body.state && { state: body.state, disabled_reason: null }),
    ...(body.state === 'enabled' && {
      failures: well.failures,
      failing_since: well.failingSince,
      probe_at: well.probeAt,
    }),
  };
}

/** The URL as it is requested: without a fragment. */
function normalized(text: string): string {
  const url = new URL(text);
  url.hash = '';
  return url.href;
}

/** A host name that does not resolve yet is accepted: its addresses are checked again at every send. */
async function refuseAddress(text: string | undefined, policy: AddressPolicy, lookup: Lookup): Promise<void> {
  if (text === undefined) return;
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') {
    throw new ApiError('invalid_request', 'The address is not valid.', {
      details: [{ path: 'body.url', message: url === null ? 'is not an address' : 'must not hold credentials' }],
    });
  }
  try {
    await resolveAllowed(url.hostname, policy, lookup);
  } catch (error) {
    if (!(error instanceof AddressRefused)) return;
    throw new ApiError('webhook_url_not_allowed', 'Deliveries to that address are refused.', {
      details: [{ path: 'body.url', message: error.message }],
    });
  }
}

/** A webhook receives what `events:read` lets one see. */
function requireReader({ scopes }: Caller): void {
  if (allows(scopes, 'events:read')) return;
  throw new ApiError('insufficient_scope', 'To subscribe a webhook to events, a token needs the scope events:read.', {
    details: [{ path: 'scope', message: 'events:read' }],
  });
}

function refuseBoundToken(caller: Caller): void {
  if (caller.projectIds === null) return;
  throw new ApiError('insufficient_scope', 'A token bound to projects makes webhooks of one of them only.', {
    details: [{ path: 'body.project_id', message: 'must be one of the projects this token is bound to' }],
  });
}
