// Asking on the terminal, and reading standard input.
import type { CommandContext } from '../frame/command.ts';
import { CliError, exit, type Io } from '../io.ts';

const most = 10_000;

/** Everything that comes on standard input, without the line end. */
export async function readStdin(io: Io): Promise<string> {
  let text = '';
  io.stdin.setEncoding('utf8');
  for await (const chunk of io.stdin) {
    text += chunk;
    if (text.length > 1_000_000) throw new CliError(exit.failed, 'There is more than 1 MB on standard input.');
  }
  return text.replace(/\r?\n$/, '');
}

/** Asks on the terminal; with `hidden`, nothing of the answer is shown. */
export function prompt(io: Io, question: string, hidden = false): Promise<string> {
  const { stdin, stderr } = io;
  // Before the question: a terminal in its usual mode would show an answer that comes at once.
  stdin.setRawMode?.(true);
  stderr.write(question);
  stdin.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    let answer = '';
    const end = (settle: () => void) => {
      stdin.off('data', onData);
      stdin.setRawMode?.(false);
      stdin.pause();
      stderr.write('\n');
      settle();
    };
    const onData = (chunk: string | Buffer) => {
      for (const letter of String(chunk)) {
        if (letter === '\r' || letter === '\n') return end(() => resolve(answer));
        if (letter === '\x03' || letter === '\x04')
          return end(() => reject(new CliError(exit.interrupted, 'interrupted')));
        if (letter === '\x7f' || letter === '\b') {
          if (answer !== '' && !hidden) stderr.write('\b \b');
          answer = answer.slice(0, -1);
        } else if (letter >= ' ' && answer.length < most) {
          answer += letter;
          if (!hidden) stderr.write(letter);
        }
      }
    };
    stdin.on('data', onData);
    stdin.resume();
  });
}

async function confirm(io: Io, question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await prompt(io, `${question} [y/N] `)).trim());
}

/** For what cannot be undone: asks on a terminal; elsewhere --yes has to be given. */
export async function confirmFirst(context: CommandContext<'yes'>, question: string): Promise<void> {
  if (context.flag('yes')) return;
  if (!context.io.stdin.isTTY) throw new CliError(exit.usage, 'Not a terminal: pass --yes.');
  if (!(await confirm(context.io, question))) throw new CliError(exit.interrupted, 'Nothing was done.');
}
