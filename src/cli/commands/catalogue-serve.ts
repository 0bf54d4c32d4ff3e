// sluice catalogue serve | headers: the site over HTTP, by the built-in server or by another.
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { type ServerName, serverRules, servers } from '../../catalogue/origin/server-rules.ts';
import { verb } from '../frame/command.ts';
import { exit, UsageError } from '../io.ts';
import { onSite, siteOf, wholeUpTo } from './catalogue-site.ts';

export const serveVerb = verb({
  about: 'serve the site over HTTP',
  args: '[DIR]',
  textOnly: true,
  options: {
    host: { type: 'string', value: 'H', about: 'the address to listen on (default: 127.0.0.1)' },
    port: { type: 'string', value: 'P', about: 'the port to listen on (default: 8080)' },
    ...onSite,
  },
  async run(context) {
    const { createOrigin } = await import('../../catalogue/origin/origin.ts');
    const { readConfig } = await import('../../config.ts');
    const { trackConnections } = await import('../../lib/connections.ts');
    const { limitConnections } = await import('../../lib/connections.ts');
    const { cutOffStalledReaders } = await import('../../lib/connections.ts');
    const folder = resolve(context.args[0] ?? siteOf(context));
    const [host, port] = [context.text('host') ?? '127.0.0.1', wholeUpTo(context, 'port', 65_535) ?? 8080];
    const origin = createOrigin(folder);
    const server = createServer(origin.handle);
    const config = readConfig(context.io.env, false);
    limitConnections(config, config.trustedProxies, [server]);
    const connections = trackConnections(server);
    cutOffStalledReaders(server, config.stallTimeoutS * 1000);
    const { promise, resolve: ended, reject } = Promise.withResolvers<void>();
    server.on('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      context.out.line(`${folder} on http://${host}:${typeof address === 'object' ? address?.port : port}/`);
    });
    context.signal.addEventListener('abort', () => void connections.closeWhenIdle().then(ended));
    await promise;
    await origin.close();
    return exit.done;
  },
});

export const headersVerb = verb({
  about: 'print the rules of the site for another web server',
  args: servers.join('|'),
  missing: `headers needs one of ${servers.join(', ')}`,
  textOnly: true,
  options: onSite,
  async run(context) {
    const server = context.args[0] as ServerName;
    if (!servers.includes(server)) throw new UsageError(`headers needs one of ${servers.join(', ')}`);
    context.io.stdout.write(serverRules(server, resolve(siteOf(context))));
    return exit.done;
  },
});
