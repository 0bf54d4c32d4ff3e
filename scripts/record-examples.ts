// npm run docs -- --examples: sends every example of the reference to a service of its own, with curl, and keeps what came
// back in docs/examples.json.
import { writeFileSync } from 'node:fs';
import type { Example } from '../src/http/docs/snippets.ts';
import { curlSender, sendWith } from '../test/docs/example-senders.ts';
import { walkExamples } from '../test/docs/example-walk.ts';
import { startApp } from '../test/helpers/app.ts';
import { Receiver } from '../test/helpers/receiver.ts';

/** The OpenAPI document is long, and a link away. */
const shortened = (name: string, response: unknown): unknown =>
  name === 'openapi.get'
    ? Object.fromEntries(Object.entries(response as object).filter(([key]) => ['openapi', 'info'].includes(key)))
    : response;

export async function recordExamples(): Promise<void> {
  const t = await startApp();
  const receiver = await Receiver.open();
  const sender = curlSender(t.url);
  const examples: Record<string, Example> = {};
  const send = sendWith(sender, (name, request, response) => {
    examples[name] = { ...request, response: shortened(name, response) };
  });
  const { url } = receiver;
  await walkExamples(t, url, send);
  await Promise.all([sender.close(), receiver.close(), t.stop()]);
  const text = JSON.stringify(examples, null, 1)
    .replaceAll(/slc_[\w-]{20,}/g, 'slc_…')
    .replaceAll(/whsec_[\w+/=-]{20,}/g, 'whsec_…')
    .replaceAll(new URL(url).origin, 'https://hooks.example')
    .replaceAll(t.url, 'http://127.0.0.1:8080');
  writeFileSync('docs/examples.json', `${text}\n`);
}
