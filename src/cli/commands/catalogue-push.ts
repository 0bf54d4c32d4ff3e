// sluice catalogue push: credentials and defaults come from the variables that other S3 tools read too.
import { parseS3Address, type S3Store, storeAt } from '../../lib/s3-address.ts';
import { type CommandContext, verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { createProgress } from '../terminal/catalogue-progress.ts';
import { onSite, siteOf } from './catalogue-site.ts';

const addressForm = 'push needs an address of the form s3://bucket/prefix';

function storeOf(context: CommandContext<'region' | 'endpoint'>): S3Store {
  const address = parseS3Address(context.args[0]!);
  if (address === null) throw new UsageError(addressForm);
  const store = storeAt(address, context.io.env);
  if (store === null) throw new UsageError('push needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  return {
    ...store,
    region: context.text('region') ?? store.region,
    endpoint: context.text('endpoint') ?? store.endpoint,
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
