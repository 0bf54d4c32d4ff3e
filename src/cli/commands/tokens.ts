import { type Scope, scopes } from '../../contract/scopes.ts';
import type { Token } from '../../contract/tokens.ts';
import { type Command, paged, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { findProject, takePaged } from '../reach/choose.ts';
import { connect } from '../reach/connect.ts';

export const command: Command = {
  verbs: {
    list: verb({
      about: 'list tokens, never their secrets',
      options: paged,
      async run(ask) {
        const sluice = await connect(ask);
        const stateOf = (token: Token) => {
          if (token.revoked_at) return 'revoked';
          return token.expires_at && Date.parse(token.expires_at) <= ask.io.now() ? 'expired' : 'valid';
        };
        ask.out.list(
          await takePaged(ask, sluice.tokens.list()),
          [
            { title: 'ID', of: ({ id }) => id },
            { title: 'NAME', of: ({ name }) => name },
            { title: 'STATE', of: stateOf, colour: (token) => (stateOf(token) === 'valid' ? 'green' : 'dim') },
            { title: 'SCOPES', of: ({ scopes: held }) => held.join(' ') },
            { title: 'LAST USED', of: ({ last_used_at }) => ask.out.time(last_used_at) },
          ],
          'There is no token.',
        );
        return exit.done;
      },
    }),
    create: verb({
      about: 'make a token that can do no more than yours; its secret is shown this once',
      args: 'NAME',
      options: {
        scope: {
          type: 'string',
          multiple: true,
          value: 'S',
          choices: scopes,
          about: 'what it may do; as often as needed',
        },
        project: { type: 'string', short: 'p', multiple: true, value: 'P', about: 'the only projects it may see' },
        days: { type: 'string', value: 'N', about: 'valid for so long (default: for ever)' },
      },
      async run(ask) {
        const sluice = await connect(ask);
        const days = ask.whole('days', 1, 99_999);
        const projects = await Promise.all(ask.texts('project').map((named) => findProject(sluice, named)));
        const chosen = ask.texts('scope') as Scope[];
        const made = await sluice.tokens.create({
          name: ask.args[0]!,
          scopes: chosen.length > 0 ? chosen : (await sluice.token.get()).scopes,
          ...(projects.length > 0 && { project_ids: projects.map(({ id }) => id) }),
          ...(days !== undefined && { expires_at: new Date(ask.io.now() + days * 86_400_000).toISOString() }),
        });
        ask.out.result(made, () => {
          ask.out.note(`${made.id}, with ${made.scopes.join(' ')}. Shown this once:`);
          ask.out.line(made.token);
        });
        return exit.done;
      },
    }),
    revoke: verb({
      about: 'revoke a token, at once and for ever',
      args: 'ID',
      async run(ask) {
        const sluice = await connect(ask);
        await sluice.tokens.revoke(ask.args[0]!);
        ask.out.result({ id: ask.args[0], revoked: true }, () => ask.out.line(`${ask.args[0]} is revoked`));
        return exit.done;
      },
    }),
    current: verb({
      about: 'show the token this command line uses',
      async run(ask) {
        const sluice = await connect(ask);
        const token = await sluice.token.get();
        ask.out.result(token, () => {
          ask.out.line(`${token.id}  ${token.name}: ${token.scopes.join(' ')}`);
          ask.out.note(`at ${ask.found!.url}, found by ${ask.found!.from}`);
        });
        return exit.done;
      },
    }),
  },
  fallback: 'list',
  notes: 'Without --scope a new token has the scopes of yours.',
  examples: [
    'sluice tokens create ci --scope deployments:write --scope deployments:read --scope projects:read --days 90',
  ],
};
