// Texts that would be programs in a page that does not escape them, wherever a tenant can write one, on every page of the
// console in a real browser: none runs, none is loaded, and each is seen as the text it is.
import type { Browser } from 'playwright-core';
import { signIn } from '../../test/console/scene.ts';
import { call } from '../../test/helpers/app.ts';
import { buildConsole, launchBrowser, openPage } from '../../test/helpers/browser.ts';
import type { Attack } from '../attack.ts';
import type { Target } from '../target.ts';

const payloads = [
  '<img src=x onerror="window.taken=1">',
  '"><script>window.taken=1</script>',
  '<svg onload=window.taken=1>',
  "'-alert(1)-'{{window.taken=1}}",
  '<a href="javascript:window.taken=1">click</a>',
  '<iframe srcdoc="<script>parent.taken=1</script>"></iframe>',
];

/** Gives the pages on which the text is to be seen. */
async function writeEverywhere({ url, attacker }: Target, text: string): Promise<string[]> {
  const ask = async (method: string, path: string, body: object) => {
    const answer = await call(url, method, `/v1${path}`, { token: attacker.tokens[0]!, body });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const project = `/projects/${attacker.project}`;
  await ask('PATCH', project, { name: text, description: text, labels: [text] });
  await ask('PATCH', `${project}/environments/production`, { locked: { reason: text } });
  await ask('POST', `${project}/alert-rules`, { environment: 'production', name: text, metric: 'external' });
  await ask('POST', '/tokens', { name: text, scopes: ['projects:read'] });
  const hook = await ask('POST', '/webhooks', { url: 'https://hooks.example/', events: ['*'], description: text });
  return [
    ...['/projects', project, `${project}/alerts`, `${project}/environments/production`],
    ...['/tokens', '/webhooks', `/webhooks/${hook.id}`],
  ];
}

async function visitPages(browser: Browser, target: Target, text: string, paths: string[]): Promise<string[]> {
  const { page, wrong } = await openPage(browser);
  page.on('dialog', (dialog) => wrong.push(`a dialog: ${dialog.message()}`));
  await signIn(page, target.url, '', target.attacker.tokens[1]!);
  await page.getByRole('heading', { name: 'Projects' }).waitFor();
  for (const path of paths) {
    await page.goto(`${target.url}/console${path}`);
    const isSeen = await page
      .getByText(text)
      .first()
      .waitFor()
      .then(
        () => true,
        () => false,
      );
    if (!isSeen) wrong.push(`${path} does not show ${text}`);
    if (await page.evaluate(() => 'taken' in window)) wrong.push(`${path} ran ${text}`);
  }
  await page.context().close();
  return wrong;
}

export const consolePayloads: Attack = {
  name: 'programs as texts, in the console',
  async run(target, short) {
    buildConsole();
    const browser = await launchBrowser();
    try {
      const broken: string[] = [];
      let tried = 0;
      for (const text of short ? payloads.slice(0, 1) : payloads) {
        const paths = await writeEverywhere(target, text);
        broken.push(...(await visitPages(browser, target, text, paths)));
        tried += paths.length;
      }
      return { tried, broken };
    } finally {
      await browser.close();
    }
  },
};
