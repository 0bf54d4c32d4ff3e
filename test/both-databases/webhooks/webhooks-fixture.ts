// The app with short retries, its receivers, and what the tests of webhooks do with them.
import assert from 'node:assert/strict';
import { after } from 'node:test';
import type { EventKind } from '../../../src/contract/events.ts';
import { emit as emitInto } from '../../helpers/emit.ts';
import { answering, Receiver } from '../../helpers/receiver.ts';
import { type SharedApp, sharedApp } from '../../helpers/shared-app.ts';
import { until } from '../../helpers/wait.ts';

export let t: SharedApp;
const receivers: Receiver[] = [];

/** Started before the tests of a file, stopped after them. */
export function setUpApp(): void {
  const webhookTimings = { scheduleMs: [50, 50, 50, 50, 50, 50], timeoutMs: 1500 };
  sharedApp({ tokenLimit: 1_000_000, webhookTimings }, (app) => {
    t = app;
  });
  after(async () => {
    for (const receiver of receivers) await receiver.close();
  });
}

export async function receive(behave = answering(200)): Promise<Receiver> {
  const receiver = await Receiver.open(behave);
  receivers.push(receiver);
  return receiver;
}

export const newProject = (): Promise<string> => t.newProject();

export async function register(url: string, projectId: string, more: object = {}) {
  const { status, body } = await t.call('POST', '/v1/webhooks', {
    body: { url, events: ['*'], project_id: projectId, ...more },
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body as { id: string; secret: string };
}

export const get = async (path: string) => (await t.call('GET', `/v1/webhooks/${path}`)).body;
export const post = (path: string, body?: object) => t.call('POST', `/v1/webhooks/${path}`, { body });

export const emit = (projectId: string, type?: EventKind, data?: object) =>
  emitInto(t.app.store.db, projectId, type, data);

/** The first delivery of a webhook, once all of them are as expected. */
export const deliveryWhen = (whk: string, expected: (delivery: { state: string; attempt_count: number }) => boolean) =>
  until('the delivery', async () => {
    const { data } = await get(`${whk}/deliveries`);
    return data.length > 0 && data.every(expected) ? data[0] : undefined;
  });
