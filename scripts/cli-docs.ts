// The part of docs/cli.md that lists the commands: made of what they declare, as their --help is.
import { readFileSync } from 'node:fs';
import { commands } from '../src/cli/commands.ts';
import { type Command, common, type Option } from '../src/cli/frame/command.ts';
import { abouts } from '../src/cli/frame/help.ts';
import { optionsOf } from '../src/cli/frame/parse.ts';

const path = 'docs/cli.md';
const begin = '## Commands\n';

const sentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`;

function optionLine([name, { short, type, value, about, choices }]: [string, Option]): string {
  const label = `${short ? `\`-${short}\`, ` : ''}\`--${name}${type === 'string' ? ` ${value ?? 'VALUE'}` : ''}\``;
  return `- ${label}: ${about}${choices ? `: ${choices.map((choice) => `\`${choice}\``).join(', ')}` : ''}`;
}

function section(name: string, about: string, command: Command): string {
  const verbs = Object.entries(command.verbs).filter(([verb]) => verb !== '');
  const rows = verbs.map(([verb, { args, about }]) => {
    const call = [verb, args].filter(Boolean).join(' ').replaceAll('|', '\\|');
    return `| \`${call}\` | ${about}${verb === command.fallback ? ' (also without a verb)' : ''} |`;
  });
  const options = Object.entries(optionsOf(command)).filter(([option]) => !(option in common));
  return [
    `### \`sluice ${name}\``,
    sentence(about),
    ['```sh', ...command.examples, '```'].join('\n'),
    ...(rows.length > 0 ? [['| verb | |', '|---|---|', ...rows].join('\n')] : []),
    ...(options.length > 0 ? [options.map(optionLine).join('\n')] : []),
    ...(command.notes ? [command.notes.replaceAll('\n', ' ')] : []),
  ].join('\n\n');
}

/** The whole page: what is written by hand, and the commands as they are now. */
export async function cliPage(): Promise<string> {
  const page = readFileSync(path, 'utf8');
  const known = abouts();
  const sections: string[] = [];
  for (const [name, load] of Object.entries(commands)) sections.push(section(name, known.get(name)!, await load()));
  const end = '_Below “Commands” this page is written by `npm run docs` from the declarations in `src/cli/`._';
  return `${page.slice(0, page.indexOf(begin))}${begin}\n${sections.join('\n\n')}\n\n${end}\n`;
}
