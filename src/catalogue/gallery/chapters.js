// Chapters of the stream that is open: a list below the player, marks on its bar, and the title beside the time.
import { chapterAt, clock, parseChapters } from './text.js';

const at = (id) => document.getElementById(id);
let chapters = [];
let shown = -1;

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** `goTo` is called with the second at which a chosen chapter begins. */
export function showChapters(text, lengthS, goTo) {
  chapters = text === '' ? [] : parseChapters(text);
  shown = -1;
  at('chapters').hidden = chapters.length === 0;
  at('chapter').textContent = '';
  const rows = chapters.map(({ from, title }) => {
    const time = make('span', { className: 'when', textContent: clock(from) });
    const button = make('button', { type: 'button' }, time, make('span', { textContent: title }));
    button.addEventListener('click', () => goTo(from));
    return make('li', {}, button);
  });
  at('chapter-list').replaceChildren(...rows);
  const starts = chapters.map(({ from }) => from).filter((from) => from > 0 && from < lengthS);
  const marks = starts.map((from) => {
    const mark = make('i', {});
    mark.style.insetInlineStart = `${(from / lengthS) * 100}%`;
    return mark;
  });
  at('marks').replaceChildren(...marks);
}

export function followChapters(seconds) {
  const now = chapterAt(chapters, seconds);
  if (now === shown) return;
  shown = now;
  at('chapter').textContent = chapters[now]?.title ?? '';
  for (const [i, row] of [...at('chapter-list').children].entries()) {
    if (i === now) row.firstChild.setAttribute('aria-current', 'true');
    else row.firstChild.removeAttribute('aria-current');
  }
}

export const chapterTitle = (seconds) => chapters[chapterAt(chapters, seconds)]?.title ?? '';

/** Where the next chapter begins, or the one before; the start of the current one, if it began a while ago. */
export function neighbour(seconds, step) {
  const now = chapterAt(chapters, seconds);
  if (step > 0) return chapters[now + 1]?.from ?? null;
  if (now < 0) return null;
  return seconds - chapters[now].from > 3 ? chapters[now].from : (chapters[now - 1]?.from ?? 0);
}
