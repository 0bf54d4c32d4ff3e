import { look } from '../doctor/checks.ts';
import type { Finding, Level } from '../doctor/finding.ts';
import { type Command, verb } from '../frame/command.ts';
import { exit } from '../io.ts';
import type { Colour } from '../terminal/output.ts';
import { pad } from '../terminal/width.ts';

const colours: Record<Level, Colour> = { ok: 'green', note: 'yellow', problem: 'red' };

export const doctor: Command = {
  verbs: {
    '': verb({
      about: 'say what works on this machine, with these settings, and what to do about the rest',
      async run({ io, out }) {
        const findings: Finding[] = [];
        for await (const finding of look(io)) {
          findings.push(finding);
          if (out.json) continue;
          const mark = out.paint(colours[finding.level], pad(finding.level, 7));
          out.line(`${mark}  ${pad(finding.what, 14)}  ${finding.found}`);
          if (finding.todo) out.line(`${' '.repeat(25)}→ ${finding.todo}`);
        }
        const problems = findings.filter(({ level }) => level === 'problem').length;
        out.result({ ok: problems === 0, findings }, () => {
          out.line();
          out.line(problems === 0 ? 'All that is needed works.' : `${problems} to mend.`);
        });
        return problems === 0 ? exit.done : exit.failed;
      },
    }),
  },
  notes: 'ok: works. note: worth knowing. problem: something that is needed is broken (exit code 1).',
  examples: ['sluice doctor', 'sluice doctor --json'],
};
