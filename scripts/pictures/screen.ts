// What a terminal would show of some output: enough of one for what the command line prints.

const colours: Record<number, string> = { 31: 'red', 32: 'green', 33: 'yellow', 34: 'blue', 36: 'cyan', 90: 'dim' };

interface Cell {
  text: string;
  classes: string;
}

/** The screen as HTML, a line for each line. */
export function screenOf(output: string): string {
  const lines: Cell[][] = [[]];
  let row = 0;
  let column = 0;
  let style = new Set<string>();
  for (const [part, code, letter] of output.matchAll(/\x1b\[([?\d;]*)([A-Za-z])|[\s\S]/gu)) {
    if (letter === 'm') style = restyle(style, code!);
    else if (letter === 'A') row = Math.max(0, row - Number(code || 1));
    else if (letter === 'K') lines[row]!.length = Math.min(lines[row]!.length, column);
    else if (letter === 'J') lines.splice(row, lines.length, lines[row]!.slice(0, column));
    else if (letter !== undefined) continue;
    else if (part === '\r') column = 0;
    else if (part === '\n') {
      row++;
      column = 0;
      lines[row] ??= [];
    } else {
      for (let gap = lines[row]!.length; gap < column; gap++) lines[row]![gap] = { text: ' ', classes: '' };
      lines[row]![column++] = { text: part, classes: [...style].join(' ') };
    }
  }
  return lines.map(htmlOf).join('\n').trimEnd();
}

function restyle(before: Set<string>, codes: string): Set<string> {
  const style = new Set(before);
  for (const code of codes.split(';').map(Number)) {
    if (code === 0) style.clear();
    else if (code === 1) style.add('bold');
    else if (code === 2) style.add('dim');
    else if (code === 22) for (const name of ['bold', 'dim']) style.delete(name);
    else if (code === 39) for (const name of Object.values(colours)) style.delete(name);
    else if (colours[code]) style.add(colours[code]);
  }
  return style;
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

function htmlOf(line: Cell[]): string {
  let html = '';
  for (let i = 0; i < line.length; ) {
    const { classes } = line[i]!;
    let text = '';
    for (; i < line.length && line[i]!.classes === classes; i++) text += line[i]!.text;
    html += classes === '' ? escaped(text) : `<span class="${classes}">${escaped(text)}</span>`;
  }
  return html;
}

const palette = `body { margin: 0; background: #fff; } pre { margin: 0; padding: 24px 28px; background: #0f1a1e; color: #dce7e6;
  font: 15px/1.45 "DejaVu Sans Mono", monospace; border-radius: 10px; width: max-content; }
  .bold { font-weight: bold; } .dim { color: #7f979b; } .green { color: #4fd1a5; } .yellow { color: #e6c35c; }
  .red { color: #ff8278; } .cyan { color: #58c7d8; } .blue { color: #7fb0ff; }`;

/** With `columns`, longer lines go on below, as on a terminal of that width. */
export function pageOf(screen: string, columns: number | null = null): string {
  const wraps =
    columns === null ? '' : `pre { width: calc(${columns}ch + 2px); white-space: pre-wrap; word-break: break-all; }`;
  return `<!doctype html><meta charset="utf-8"><style>${palette} ${wraps}</style><pre>${screen}</pre>`;
}
