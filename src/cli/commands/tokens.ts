import { type Scope, scopes } from '../../contract/scopes.ts';
import type { Token } from '../../contract/tokens.ts';
import { findProject, takePaged } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';

export const tokens: Command = {
  verbs: {
    list: verb({
      about: 'list tokens, never their secrets',
      options: paged,
      async run(context) {
        const sluice = await connect(context);
        const stateOf = (token: Token) => {
          if (token.revoked_at) return 'revoked';
          return token.expires_at && Date.parse(token.expires_at) <= context.io.now() ? 'expired' : 'valid';
        };
        context.out.list(
          await takePaged(context, sluice.tokens.list()),
          [
            { title: 'ID', of: ({ id }) => id, whole: true },
            { title: 'NAME', of: ({ name }) => name },
            { title: 'STATE', of: stateOf, colour: (token) => (stateOf(token) === 'valid' ? 'green' : 'dim') },
            { title: 'SCOPES', of: ({ scopes: held }) => held.join(' ') },
            { title: 'LAST USED', of: ({ last_used_at }) => context.out.time(last_used_at), optional: 1 },
          ],
          'There is no token.',
        );
        return exit.done;
      },
    }),
    create: verb({
      about: 'create a token with no more rights than yours; its secret is shown only once',
      args: 'NAME',
      options: {
        scope: {
          type: 'string',
          multiple: true,
          value: 'S',
          choices: scopes,
          about: 'a scope; may be repeated',
        },
        project: { type: 'string', short: 'p', multiple: true, value: 'P', about: 'the only projects it may see' },
        days: { type: 'string', value: 'N', about: 'days until it expires (default: never)' },
      },
      async run(context) {
        const sluice = await connect(context);
        const days = context.whole('days', 1, 99_999);
        const projects = await Promise.all(context.texts('project').map((named) => findProject(sluice, named)));
        const chosen = context.texts('scope') as Scope[];
        const made = await sluice.tokens.create({
          name: context.args[0]!,
          scopes: chosen.length > 0 ? chosen : (await sluice.token.get()).scopes,
          ...(projects.length > 0 && { project_ids: projects.map(({ id }) => id) }),
          ...(days !== undefined && { expires_at: new Date(context.io.now() + days * 86_400_000).toISOString() }),
        });
        context.out.result(made, () => {
          context.out.note(`${made.id}, with ${made.scopes.join(' ')}. Shown this once:`);
          context.out.line(made.token);
        });
        return exit.done;
      },
    }),
    revoke: verb({
      about: 'revoke a token, immediately and permanently',
      args: 'ID',
      options: { cascade: { type: 'boolean', about: 'also all tokens created with it, directly or indirectly' } },
      async run(context) {
        const sluice = await connect(context);
        const cascade = context.flag('cascade');
        await sluice.tokens.revoke(context.args[0]!, cascade ? { cascade: 'true' } : {});
        context.out.result({ id: context.args[0], revoked: true, cascade }, () =>
          context.out.line(`${context.args[0]} is revoked${cascade ? ', and all tokens that it made' : ''}`),
        );
        return exit.done;
      },
    }),
    current: verb({
      about: 'show the token this command line uses',
      async run(context) {
        const sluice = await connect(context);
        const token = await sluice.token.get();
        context.out.result(token, () => {
          context.out.line(`${token.id}  ${token.name}: ${token.scopes.join(' ')}`);
          context.out.note(`at ${context.found!.url}, found by ${context.found!.from}`);
        });
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  notes: 'Without --scope a new token has the scopes of yours. It expires no later than yours.',
  examples: [
    'sluice tokens create ci --scope deployments:write --scope deployments:read --scope projects:read --days 90',
  ],
};
