// sluice login and logout: which service the command line talks to by default.
import { clientFor, defaultUrl, fromDataDirectory, loginPath, normalUrl, removeLogin, writeLogin } from '../connect.ts';
import { type Command, verb } from '../frame/command.ts';
import { CliError, exit, type Io, UsageError } from '../io.ts';
import { prompt, readStdin } from '../terminal/prompt.ts';

function addressFrom(given: string | undefined, io: Io): string | null {
  if (given !== undefined) return normalUrl(given, given);
  return io.env.SLUICE_API_URL ? normalUrl(io.env.SLUICE_API_URL, 'SLUICE_API_URL') : null;
}

/** Nobody saw the address before the token was piped in: a data directory's address gets only that directory's token. */
function refuseUnnamed(url: string, token: string, io: Io): void {
  if (token === fromDataDirectory(io).token) return;
  throw new CliError(
    exit.settings,
    `The address ${url} was not named, so the token is not sent there.`,
    `Name it: sluice login ${url} --token-stdin`,
  );
}

async function tokenFrom(io: Io, fromStdin: boolean, url: string): Promise<string> {
  if (!fromStdin && !io.stdin.isTTY) throw new UsageError('Not a terminal: pass the token with --token-stdin.');
  const token = (fromStdin ? await readStdin(io) : await prompt(io, `Token for ${url} (not shown): `, true)).trim();
  if (!/^[!-~]{1,200}$/.test(token)) throw new CliError(exit.usage, 'A token is one line without spaces.');
  return token;
}

const isSafe = (url: string): boolean =>
  url.startsWith('https:') || /^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:|\/|$)/.test(url);

export const login: Command = {
  verbs: {
    '': verb({
      about: 'check and store a service and a token',
      args: '[URL]',
      options: { 'token-stdin': { type: 'boolean', about: 'read the token from standard input' } },
      async run(context) {
        const { io, out } = context;
        const named = addressFrom(context.args[0], io);
        const url = named ?? fromDataDirectory(io).url ?? defaultUrl;
        if (!isSafe(url)) out.note(`Mind: ${url} is not https, so the token can be read on the way.`);
        const token = await tokenFrom(io, context.flag('token-stdin'), url);
        if (named === null && context.flag('token-stdin')) refuseUnnamed(url, token, io);
        context.found = { url, token, from: 'what you gave' };
        const sluice = await clientFor(context.found);
        const { id, name, scopes } = await sluice.token.get();
        const path = writeLogin(io.env, { url, token });
        out.result({ url, token_id: id, scopes, path }, () => {
          out.line(`Logged in to ${url} as ${name} (${scopes.join(' ')})`);
          out.note(`Kept in ${path}, which only you can read.`);
        });
        if (io.env.SLUICE_API_URL || io.env.SLUICE_TOKEN)
          out.note('Mind: SLUICE_API_URL and SLUICE_TOKEN, if set, come before the login.');
        return exit.done;
      },
    }),
  },
  notes: 'The token is never an argument, so it stays out of your shell history.',
  examples: ['sluice login https://sluice.example', 'sluice login --token-stdin < data/admin-token'],
};

export const logout: Command = {
  verbs: {
    '': verb({
      about: 'delete the stored service and token; the token itself stays valid',
      async run({ io, out }) {
        const removed = removeLogin(io.env);
        out.result({ removed }, () => {
          out.line(removed ? `${loginPath(io.env)} is removed` : 'Nothing was stored.');
          if (removed) out.note('The token stays valid; end it with: sluice tokens revoke ID');
        });
        return exit.done;
      },
    }),
  },
  examples: ['sluice logout'],
};
