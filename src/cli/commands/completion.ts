// sluice completion SHELL prints a script that calls this program for the words that may follow, so that completion
// always knows every command, verb and option, and the projects, environments and revisions of the service.
import type { Sluice } from '../../client/index.ts';
import { chooseEnvironment, chooseProject, take } from '../choose-target.ts';
import { connect } from '../connect.ts';
import { type Command, type CommandContext, type Options, verb } from '../frame/command.ts';
import { abouts } from '../frame/help.ts';
import { optionsOf } from '../frame/parse.ts';
import { exit, type Io, UsageError } from '../io.ts';
import { clean } from '../terminal/table.ts';

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
async function wordsAfter(io: Io, typed: string[], find: FindCommand): Promise<Word[]> {
  const [name = '', ...rest] = typed;
  if (rest.length === 0) return commandWords();
  const command = await find(name);
  return command === undefined ? [] : wordsOf(io, command, rest);
}

function commandWords(): Word[] {
  return [...abouts()].map(([word, about]) => ({ word, about }));
}

interface Typed {
  /** Without options. */
  positionals: string[];
  /** Of options that take one. */
  values: Map<string, string>;
  /** The option whose value is being typed. */
  waiting: string | null;
}

function readTyped(before: string[], options: Options): Typed {
  const typed: Typed = { positionals: [], values: new Map(), waiting: null };
  for (const word of before) {
    if (typed.waiting !== null) {
      typed.values.set(typed.waiting, word);
      typed.waiting = null;
    } else if (word.startsWith('-')) {
      const [label, value] = word.replace(/^--?/, '').split(/=(.*)/s) as [string, string?];
      const name = word.startsWith('--') ? label : Object.keys(options).find((each) => options[each]!.short === label);
      if (name === undefined || options[name]?.type !== 'string') continue;
      if (value === undefined) typed.waiting = name;
      else typed.values.set(name, value);
    } else typed.positionals.push(word);
  }
  return typed;
}

async function wordsOf(io: Io, command: Command, typed: string[]): Promise<Word[]> {
  const current = typed.at(-1)!;
  const all = optionsOf(command);
  const { positionals, values, waiting } = readTyped(typed.slice(0, -1), all);
  if (waiting !== null) {
    const { choices } = all[waiting]!;
    return choices ? choices.map((word) => ({ word, about: '' })) : known(io, waiting, values);
  }
  const isAlone = '' in command.verbs;
  const chosen = command.verbs[isAlone ? '' : (positionals.shift() ?? '')];
  const options = Object.entries(chosen?.options ?? all).map(([option, { about }]) => ({ word: `--${option}`, about }));
  if (current.startsWith('-')) return options;
  if (!chosen) return Object.entries(command.verbs).map(([word, { about }]) => ({ word, about }));
  const argument = chosen.args.split(' ')[positionals.length] ?? '';
  return known(io, argument.replaceAll(/[[\]…]/g, '').toLowerCase(), values);
}

/** How long a shell is held up by a service that does not answer. */
const patienceMs = 1500;
const mostKnown = 200;

/** What the service has of that kind; nothing where it cannot be asked. */
async function known(io: Io, kind: string, values: Map<string, string>): Promise<Word[]> {
  const list = kinds[kind];
  if (list === undefined) return [];
  setTimeout(() => process.exit(exit.done), patienceMs).unref();
  const context = { io, args: [], found: null, text: (name: string) => values.get(name) } as unknown as CommandContext;
  try {
    return await list(context, await connect(context));
  } catch {
    return [];
  }
}

type ListKnown = (context: CommandContext<'project' | 'env'>, sluice: Sluice) => Promise<Word[]>;

const projectWords: ListKnown = async (_context, sluice) =>
  (await take(sluice.projects.list({ limit: 100 }), mostKnown)).map(({ slug, name }) => ({ word: slug, about: name }));

const environmentWords: ListKnown = async (context) => {
  const { sluice, project } = await chooseProject(context);
  const found = await take(sluice.environments.list(project.id), mostKnown);
  return found.map(({ name, health }) => ({ word: name, about: health.state }));
};

const revisionWords: ListKnown = async (context) => {
  const { sluice, project, environment } = await chooseEnvironment(context);
  const found = await take(sluice.revisions.list(project.id, environment, { limit: 100 }), mostKnown);
  return found.map(({ id, state, image }) => ({ word: id, about: `${state} ${image}` }));
};

/** By the name of the option, or of the argument in lower case. */
const kinds: Record<string, ListKnown> = {
  project: projectWords,
  env: environmentWords,
  environment: environmentWords,
  revision: revisionWords,
  deployment: revisionWords,
};

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
      async run({ args, out, io }) {
        if (args.length > 1000) throw new UsageError('These are too many words.');
        for (const { word, about } of await wordsAfter(io, args, find))
          out.line(about ? `${word}\t${clean(about)}` : word);
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
