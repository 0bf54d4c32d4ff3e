// sluice catalogue push: credentials and defaults come from the variables that other S3 tools read too.
import type { Store } from '../../catalogue/push/s3.ts';
import { type CommandContext, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { createProgress } from '../terminal/catalogue-progress.ts';
import { onSite, siteOf } from './catalogue-site.ts';

const addressForm = 'push needs an address of the form s3://bucket/prefix';

function storeOf(context: CommandContext<'region' | 'endpoint'>): Store {
  const target = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(context.args[0]!);
  if (target === null) throw new UsageError(addressForm);
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ENDPOINT_URL, AWS_REGION } = context.io.env;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY)
    throw new UsageError('push needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  return {
    bucket: target[1]!,
    prefix: (target[2] ?? '').replace(/^\/+|\/+$/g, ''),
    region: context.text('region') ?? AWS_REGION ?? 'us-east-1',
    endpoint: context.text('endpoint') ?? AWS_ENDPOINT_URL,
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN,
  };
}

export const pushVerb = verb({
  about: 'copy the site to an object store',
  args: 's3://BUCKET/PREFIX',
  missing: addressForm,
  textOnly: true,
  options: {
    endpoint: { type: 'string', value: 'URL', about: 'an S3-compatible store (default: AWS_ENDPOINT_URL)' },
    region: { type: 'string', value: 'R', about: 'its region (default: AWS_REGION, or us-east-1)' },
    prune: { type: 'boolean', about: 'then remove media that the document no longer names' },
    ...onSite,
  },
  async run(context) {
    const store = storeOf(context);
    const { sitePathsOf } = await import('../../catalogue/site-paths.ts');
    const { pushSite } = await import('../../catalogue/push/push.ts');
    const progress = createProgress(context.io.stdout);
    const { sent, present, removed } = await pushSite({
      paths: sitePathsOf(siteOf(context)),
      store,
      prune: context.flag('prune'),
      signal: context.signal,
      report: (text) => progress.report({ kind: 'note', text }),
    });
    progress.end();
    context.out.line(`${sent} sent, ${present} already there, ${removed} removed`);
    return exit.done;
  },
});
