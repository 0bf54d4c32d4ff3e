// The help of a command, made from what it declares.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installDir } from '../../lib/install.ts';
import { fold } from '../terminal/table.ts';
import { type Command, common, type Option, type Options, type Verb } from './command.ts';
import { optionsOf } from './parse.ts';

/** The page of `sluice --help`: also printed by bin/sluice.js, which cannot read TypeScript on an old Node.js. */
export const overview = (): string => readFileSync(join(installDir, 'src/cli/overview.txt'), 'utf8');

/** Every command's name and description, from the overview. */
export function abouts(): Map<string, string> {
  const lines = overview().matchAll(/^ {2}([a-z]+) {2,}(.+)$/gm);
  return new Map([...lines].map(([, name, about]) => [name!, about!]));
}

function line(left: string, right: string, width: number, columns: number | null): string {
  const [alone, text] = left.length > width - 2 ? [`  ${left}\n`, ''] : ['', left];
  return alone + fold(`  ${text.padEnd(width)}${right}`, columns, width + 2).join('\n');
}

function optionLabel([name, option]: [string, Option]): string {
  return `${option.short ? `-${option.short}, ` : '    '}--${name}${option.type === 'string' ? ` ${option.value ?? 'VALUE'}` : ''}`;
}

function optionLines(options: Options, columns: number | null): string[] {
  const isCommon = ([name]: [string, Option]) => name in common;
  const own = Object.entries(options).filter((entry) => !isCommon(entry));
  return [...own, ...Object.entries(options).filter(isCommon)].map((entry) => {
    const choices = entry[1].choices ? `: ${entry[1].choices.join(', ')}` : '';
    return line(optionLabel(entry), `${entry[1].about}${choices}`, 22, columns);
  });
}

const callOf = (name: string, verbName: string, verb: Verb): string =>
  ['sluice', name, verbName, verb.args].filter((word) => word !== '').join(' ');

/** The help of one verb, or of the whole command where none is named. */
export function commandHelp(name: string, command: Command, verbName: string, columns: number | null = null): string {
  const verb = command.verbs[verbName];
  const head = verb
    ? [`usage: ${callOf(name, verbName, verb)} [options]`, '', sentence(verb.about)]
    : [`usage: sluice ${name} VERB [options]`, '', ...verbLines(command, columns)];
  const options = optionLines(verb?.options ?? optionsOf(command), columns);
  const notes = command.notes ? ['', command.notes] : [];
  const examples = verb && verbName !== '' ? command.examples.filter((text) => text.includes(` ${verbName}`)) : [];
  const shown = examples.length > 0 ? examples : command.examples;
  return [...head, '', ...options, ...notes, '', 'for example:', ...shown.map((text) => `  ${text}`)].join('\n');
}

function verbLines(command: Command, columns: number | null): string[] {
  return Object.entries(command.verbs).map(([verbName, verb]) => {
    const usual = verbName === command.fallback ? ' (also without a verb)' : '';
    return line([verbName, verb.args].filter(Boolean).join(' '), `${verb.about}${usual}`, 30, columns);
  });
}

const sentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`;
