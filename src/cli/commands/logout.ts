import { type Command, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import { loginPath, removeLogin } from '../reach/login-file.ts';

export const logout: Command = {
  verbs: {
    '': verb({
      about: 'forget the service and the token that login stored; the token itself stays valid',
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
