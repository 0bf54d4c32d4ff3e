// The Markdown of docs/ as HTML: headings, paragraphs, lists, tables, code, links, pictures. Those pages are ours, so what
// they do not use is not understood here, and everything in them is escaped all the same.

export interface Section {
  title: string;
  /** Its id on the page; empty: the page itself. */
  anchor: string;
  text: string;
}

export interface RenderedPage {
  title: string;
  html: string;
  /** What can be searched for: a section for each heading, and for each row of a table that begins with code. */
  sections: Section[];
}

/** Where a link leads on the site; null: nowhere, so its text stays without one. */
export type LinkTo = (href: string) => string | null;

export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** As GitHub makes it, so that links between the pages lead to the same places in both. */
export const anchorOf = (heading: string): string =>
  plain(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

const plain = (text: string): string =>
  text
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll(/\\([|\\])/g, '$1');

export function renderMarkdown(source: string, linkTo: LinkTo): RenderedPage {
  const lines = source.split('\n');
  const html: string[] = [];
  const sections: Section[] = [];
  const addText = (text: string) => {
    const last = sections.at(-1);
    if (last) last.text += `${plain(text)} `;
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    const heading = /^(#{1,6}) (.+)$/.exec(line);
    if (line.trim() === '') at++;
    else if (heading) {
      const [, { length: level }, text] = heading as unknown as [string, string, string];
      const anchor = level === 1 ? '' : anchorOf(text);
      sections.push({ title: plain(text), anchor, text: '' });
      html.push(`<h${level}${anchor && ` id="${anchor}"`}>${inline(text, linkTo)}</h${level}>`);
      at++;
    } else if (line.startsWith('```')) {
      const end = lines.indexOf('```', at + 1);
      const code = lines.slice(at + 1, end === -1 ? lines.length : end).join('\n');
      html.push(`<pre><code>${escapeHtml(code)}</code></pre>`);
      sections.at(-1)!.text += `${code} `;
      at = end === -1 ? lines.length : end + 1;
    } else {
      const isPart = blockAt(line);
      let end = at + 1;
      while (end < lines.length && isPart(lines[end]!)) end++;
      const block = lines.slice(at, end);
      at = end;
      if (line.startsWith('|')) html.push(table(block, linkTo, sections));
      else {
        addText(block.join(' '));
        html.push(itemOf(line) ? list(block, linkTo) : paragraph(block, linkTo));
      }
    }
  }
  return { title: sections[0]?.title ?? '', html: html.join('\n'), sections };
}

const itemOf = (line: string): { indent: number; isOrdered: boolean; text: string } | null => {
  const found = /^( *)([-*]|\d+\.) (.*)$/.exec(line);
  return found && { indent: found[1]!.length, isOrdered: /\d/.test(found[2]!), text: found[3]! };
};

/** Tells which of the lines that follow belong to the block that begins with this one. */
function blockAt(first: string): (line: string) => boolean {
  if (first.startsWith('|')) return (line) => line.startsWith('|');
  if (itemOf(first)) return (line) => itemOf(line) !== null || /^ +\S/.test(line);
  return (line) => line.trim() !== '' && !/^(#{1,6} |```|\|)/.test(line) && itemOf(line) === null;
}

const paragraph = (block: string[], linkTo: LinkTo): string =>
  block[0]!.startsWith('> ')
    ? `<blockquote>${inline(block.map((line) => line.replace(/^> ?/, '')).join(' '), linkTo)}</blockquote>`
    : `<p>${inline(block.join(' '), linkTo)}</p>`;

/** Items of one depth; what is indented further is a list within the item before it. */
function list(block: string[], linkTo: LinkTo): string {
  const { indent, isOrdered } = itemOf(block[0]!)!;
  const items: { text: string; inner: string[] }[] = [];
  for (const line of block) {
    const item = itemOf(line);
    if (item && item.indent <= indent) items.push({ text: item.text, inner: [] });
    else if (item || items.at(-1)!.inner.length > 0) items.at(-1)!.inner.push(line);
    else items.at(-1)!.text += ` ${line.trim()}`;
  }
  const tag = isOrdered ? 'ol' : 'ul';
  const shown = items.map(
    ({ text, inner }) => `<li>${inline(text, linkTo)}${inner.length > 0 ? list(inner, linkTo) : ''}</li>`,
  );
  return `<${tag}>${shown.join('')}</${tag}>`;
}

const cellsOf = (row: string): string[] =>
  row
    .slice(1, row.lastIndexOf('|'))
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

function table([head, , ...rows]: string[], linkTo: LinkTo, sections: Section[]): string {
  const shown = rows.map((row) => {
    const cells = cellsOf(row);
    const name = /^`([^`]+)`$/.exec(cells[0]!)?.[1];
    const anchor = name ? anchorOf(name) : '';
    if (name) sections.push({ title: name, anchor, text: plain(cells.slice(1).join(' ')) });
    else sections.at(-1)!.text += `${plain(cells.join(' '))} `;
    return `<tr${anchor && ` id="${anchor}"`}>${cells.map((cell) => `<td>${inline(cell, linkTo)}</td>`).join('')}</tr>`;
  });
  const titles = cellsOf(head!).map((cell) => `<th>${inline(cell, linkTo)}</th>`);
  return `<div class="scroll"><table><thead><tr>${titles.join('')}</tr></thead><tbody>${shown.join('')}</tbody></table></div>`;
}

/** Code first: nothing within it is a mark. */
function inline(text: string, linkTo: LinkTo): string {
  const kept: string[] = [];
  const keep = (html: string) => `\u0000${kept.push(html) - 1}\u0000`;
  const marked = text
    .replaceAll(/(`+)(.+?)\1/g, (_, _ticks, code: string) => keep(`<code>${escapeHtml(code.trim())}</code>`))
    .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, (_, about: string) => keep(`<em>${escapeHtml(about)}</em>`))
    .replaceAll(/\[([^\]]*)\]\(([^)\s]*)\)/g, (_, label: string, href: string) => {
      const target = linkTo(href);
      const shown = escapeHtml(label);
      return keep(target === null ? shown : `<a href="${escapeHtml(target)}">${shown}</a>`);
    });
  const html = escapeHtml(marked)
    .replaceAll(/\*\*(.+?)\*\*/g, '<strong>$1</strong>')
    .replaceAll(/(?<![\p{L}\p{N}_])_([^_]+)_(?![\p{L}\p{N}_])/gu, '<em>$1</em>');
  return restore(html, kept);
}

/** A link's label may hold code. */
const restore = (html: string, kept: string[]): string =>
  html.includes('\u0000')
    ? restore(
        html.replaceAll(/\u0000(\d+)\u0000/g, (_, index) => kept[Number(index)]!),
        kept,
      )
    : html;
