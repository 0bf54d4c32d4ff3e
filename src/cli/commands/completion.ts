// sluice completion SHELL prints a script that calls this program for the words that may follow, so that completion
// always knows every command, verb and option.
import { type Command, verb } from '../frame/command.ts';
import { abouts } from '../frame/help.ts';
import { optionsOf } from '../frame/parse.ts';
import { exit, UsageError } from '../io.ts';

const scripts: Record<string, string> = {
  bash: `_sluice() {
  local IFS=$'\\n'
  COMPREPLY=( $(compgen -W "$(sluice completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)" -- "\${COMP_WORDS[COMP_CWORD]}") )
}
complete -o default -F _sluice sluice
`,
  zsh: `#compdef sluice
_sluice() {
  local -a found
  found=("\${(@f)$(sluice completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null | sed 's/:/\\\\:/g; s/\\t/:/')}")
  if (( \${#found} )) && [[ -n "\${found[1]}" ]]; then _describe sluice found; else _files; fi
}
if [[ "\${funcstack[1]}" == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`,
  fish: `function __sluice_words
  set -l words (commandline -opc) (commandline -ct)
  sluice completion words -- $words[2..-1] 2>/dev/null
end
complete -c sluice -f -a '(__sluice_words)'
`,
};

interface Word {
  word: string;
  about: string;
}

/** Loads a command by its name or short name; undefined where there is none. */
type FindCommand = (name: string) => Promise<Command> | undefined;

/** The words that can replace the last one, which is being typed. */
async function wordsAfter(typed: string[], find: FindCommand): Promise<Word[]> {
  const [name = '', ...rest] = typed;
  if (rest.length === 0) return commandWords();
  const command = await find(name);
  return command === undefined ? [] : wordsOf(command, rest);
}

function commandWords(): Word[] {
  return [...abouts()].map(([word, about]) => ({ word, about }));
}

function wordsOf(command: Command, typed: string[]): Word[] {
  const current = typed.at(-1)!;
  const before = typed.slice(0, -1);
  const all = optionsOf(command);
  const waiting = all[(before.at(-1) ?? '').replace(/^--/, '')];
  if (before.at(-1)?.startsWith('--') && waiting?.type === 'string')
    return (waiting.choices ?? []).map((word) => ({ word, about: '' }));
  const verbName = before.find((word) => Object.hasOwn(command.verbs, word));
  const chosen = command.verbs[''] ?? (verbName === undefined ? undefined : command.verbs[verbName]);
  const options = Object.entries(chosen?.options ?? all).map(([option, { about }]) => ({ word: `--${option}`, about }));
  if (current.startsWith('-')) return options;
  if (chosen) return [];
  return Object.entries(command.verbs).map(([word, { about }]) => ({ word, about }));
}

const script = (shell: string, about: string) =>
  verb({
    about,
    async run({ io }) {
      io.stdout.write(scripts[shell]!);
      return exit.done;
    },
  });

/** `find` is handed in, because the list of commands includes this one. */
export const completionOf = (find: FindCommand): Command => ({
  verbs: {
    bash: script('bash', 'print the script for bash'),
    zsh: script('zsh', 'print the script for zsh'),
    fish: script('fish', 'print the script for fish'),
    words: verb({
      about: 'print the words that may follow those after --, for the scripts',
      args: '[WORD…]',
      async run({ args, out }) {
        if (args.length > 1000) throw new UsageError('These are too many words.');
        for (const { word, about } of await wordsAfter(args, find)) out.line(about ? `${word}\t${about}` : word);
        return exit.done;
      },
    }),
  },
  examples: [
    'source <(sluice completion bash)                                   # in ~/.bashrc',
    'source <(sluice completion zsh)                                    # in ~/.zshrc',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ],
});
