// The page: the list of streams, search, and what the address says is open (#/id?t=seconds).
import { closeStream, openStream, position } from './player.js';
import { address, clock, factsFor, parseRoute, routeOf, snippetsFor } from './text.js';

const KNOWN_VERSION = 2;
const at = (id) => document.getElementById(id);
const { origin } = window.location;
let streams = [];
let opened = null;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function card(stream) {
  const poster = address(stream.poster, origin);
  const picture = make('span', { className: 'picture' });
  if (poster !== null) picture.append(make('img', { src: poster, alt: '', loading: 'lazy', decoding: 'async' }));
  picture.append(make('span', { className: 'badge', textContent: clock(stream.duration_s) }));
  const facts = stream.hls ? 'Adaptive' : Object.keys(stream.progressive).join(', ');
  const link = make('a', { href: routeOf(stream.id), className: 'card' }, picture);
  link.append(make('span', { className: 'title', textContent: stream.title }));
  link.append(make('span', { className: 'sub', textContent: `${facts} · ${stream.fps} fps` }));
  link.dataset.id = stream.id;
  return make('li', {}, link);
}

function showList() {
  const words = at('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = streams.filter(({ id, title }) => words.every((word) => `${id} ${title}`.toLowerCase().includes(word)));
  at('grid').replaceChildren(...found.map(card));
  const none = streams.length === 0 ? 'No streams yet.' : 'Nothing matches.';
  at('status').textContent = found.length === 0 ? none : '';
  at('status').hidden = found.length > 0;
  markOpened();
}

function markOpened() {
  for (const link of document.querySelectorAll('.card')) {
    if (link.dataset.id === opened?.id) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
}

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Press Ctrl-C';
    const range = document.createRange();
    range.selectNodeContents(button.parentElement.querySelector('code') ?? button);
    window.getSelection()?.removeAllRanges();
    window.getSelection()?.addRange(range);
  }
  at('announce').textContent = button.textContent;
  setTimeout(() => {
    button.textContent = before;
  }, 1500);
}

function snippetRow({ name, text }) {
  const button = make('button', { type: 'button', className: 'quiet', textContent: 'Copy' });
  button.setAttribute('aria-label', `Copy ${name}`);
  button.addEventListener('click', () => copy(text, button));
  const head = make('span', { className: 'name', textContent: name });
  return make('div', { className: 'snippet' }, head, make('code', { textContent: text }), button);
}

function open(stream, seconds) {
  opened = stream;
  at('watch').hidden = false;
  at('watch-title').textContent = stream.title;
  at('watch-facts').textContent = factsFor(stream);
  at('snippets').replaceChildren(...snippetsFor(stream, origin).map(snippetRow));
  document.title = `${stream.title} · Catalogue`;
  openStream(stream, seconds);
  window.scrollTo({ top: 0 });
  at('player').focus({ preventScroll: true });
}

function close() {
  const last = opened?.id;
  opened = null;
  at('watch').hidden = true;
  document.title = 'Catalogue';
  closeStream();
  // Back to the card one came from, for those who walk by keyboard.
  if (last !== undefined) document.querySelector(`.card[data-id="${last}"]`)?.focus();
}

function followAddress() {
  const route = parseRoute(window.location.hash);
  const stream = route && streams.find(({ id }) => id === route.id);
  if (stream) {
    if (stream !== opened) open(stream, route.seconds);
  } else {
    close();
    if (route !== null) {
      at('status').textContent = `There is no stream “${route.id}”.`;
      at('status').hidden = false;
    }
  }
  markOpened();
}

async function start() {
  const response = await fetch('/api/streams.json', { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`the catalogue answered ${response.status}`);
  const document_ = await response.json();
  if (document_.version !== KNOWN_VERSION) throw new Error(`this page does not know version ${document_.version}`);
  streams = document_.streams;
  at('updated').textContent =
    `${streams.length} ${streams.length === 1 ? 'stream' : 'streams'}, updated ${document_.updated}`;
  showList();
  followAddress();
}

at('search').addEventListener('input', showList);
at('share').addEventListener('click', (event) => {
  const link = new URL(routeOf(opened.id, position()), window.location.href).href;
  copy(link, event.currentTarget);
});
window.addEventListener('hashchange', followAddress);
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && opened !== null && !document.fullscreenElement) window.location.hash = '';
  if (event.key === '/' && !(event.target instanceof HTMLInputElement)) {
    event.preventDefault();
    at('search').focus();
  }
});
start().catch((error) => {
  at('status').textContent = `The catalogue could not be read: ${error.message}.`;
});
