// Every example of the reference is sent, in each of its languages, to a real service; and what docs/examples.json holds is
// what is sent here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { routes } from '../../src/contract/api.ts';
import type { ExampleRequest } from '../../src/http/docs/snippets.ts';
import { startApp, type TestApp } from '../helpers/app.ts';
import { Receiver } from '../helpers/receiver.ts';
import { curlSender, pythonSender, type Sender, sendWith, typescriptSender } from './example-senders.ts';
import { walkExamples } from './example-walk.ts';

const senders: Record<string, (url: string) => Sender> = {
  curl: curlSender,
  TypeScript: typescriptSender,
  Python: pythonSender,
};

/** Ids and addresses differ from one service to the next. */
const withoutIds = (text: string): string =>
  text
    .replaceAll(/\b([a-z]{3})_[0-9a-z]{26}\b/g, '$1_…')
    .replaceAll(/http:\/\/127\.0\.0\.1:\d+|https:\/\/hooks\.example/g, 'http://…');

describe('the examples of the reference', () => {
  let t: TestApp;
  let receiver: Receiver;
  before(async () => {
    t = await startApp();
    receiver = await Receiver.open();
  });
  after(async () => {
    await t.stop();
    await receiver.close();
  });

  for (const [language, open] of Object.entries(senders)) {
    test(`each is sent with ${language}, and is the one that is shown`, async () => {
      const sent: Record<string, ExampleRequest> = {};
      const sender = open(t.url);
      const send = sendWith(sender, (name, request) => {
        sent[name] = request;
      });
      await walkExamples(t, receiver.url, send).finally(() => sender.close());
      assert.deepEqual(Object.keys(sent).sort(), routes.map(({ name }) => name).sort());
      const recorded = JSON.parse(withoutIds(readFileSync('docs/examples.json', 'utf8')));
      for (const [name, request] of Object.entries(sent)) {
        const { response: _, ...shown } = recorded[name];
        assert.deepEqual(shown, JSON.parse(withoutIds(JSON.stringify(request))), `${name}: npm run docs -- --examples`);
      }
    });
  }
});
