// The page: the list of streams, search, and what the address says is open (#/id?t=seconds).
import { again } from './network.js';
import { closeStream, openStream, position } from './player.js';
import {
  address,
  cardFacts,
  clock,
  factsFor,
  keyList,
  linksOf,
  matcherOf,
  parseRoute,
  routeOf,
  searchText,
  shapeOf,
  snippetsFor,
} from './text.js';

const KNOWN_VERSION = 2;
const at = (id) => document.getElementById(id);
const { origin } = window.location;
let streams = [];
let renditions = [];
/** A card for each stream, made once: a search over thousands only shows and hides them. */
let cards = [];
let opened = null;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function card(stream) {
  const poster = address(stream.poster, origin);
  const picture = make('span', { className: 'picture' });
  if (poster !== null) {
    const image = make('img', { src: poster, alt: '', loading: 'lazy', decoding: 'async' });
    const showShape = (shape) => picture.classList.toggle('upright', shape !== null && shape < 1);
    showShape(shapeOf(stream));
    image.addEventListener('load', () =>
      showShape(shapeOf({ width: image.naturalWidth, height: image.naturalHeight })),
    );
    picture.append(image);
  }
  picture.append(make('span', { className: 'badge', textContent: clock(stream.duration_s) }));
  const link = make('a', { href: routeOf(stream.id), className: 'card' }, picture);
  link.append(make('span', { className: 'title', textContent: stream.title }));
  link.append(make('span', { className: 'sub', textContent: cardFacts(stream, renditions) }));
  link.dataset.id = stream.id;
  return { text: searchText(stream), item: make('li', {}, link) };
}

const counted = (count) => `${count.toLocaleString()} ${count === 1 ? 'stream' : 'streams'}`;

function showList() {
  const query = at('search').value.trim();
  const matches = matcherOf(query);
  let found = 0;
  for (const { text, item } of cards) {
    item.hidden = !matches(text);
    if (!item.hidden) found++;
  }
  const none = streams.length === 0 ? 'No streams yet.' : 'Nothing matches.';
  const some = query === '' ? '' : `${counted(found)} of ${streams.length.toLocaleString()}`;
  at('status').textContent = found === 0 ? none : some;
  at('status').hidden = at('status').textContent === '';
}

function markOpened() {
  for (const link of document.querySelectorAll('.card')) {
    if (link.dataset.id === opened?.id) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
  }
}

async function copy(text, button) {
  const before = button.textContent;
  button.dataset.told = 'yes';
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
    delete button.dataset.told;
    button.textContent = before;
    nameShareButton();
  }, 1500);
}

/** The link leads to the moment that is shown. */
function nameShareButton() {
  if (opened === null || at('share').dataset.told) return;
  const seconds = position();
  at('share').textContent = seconds < 1 ? 'Copy link' : `Copy link at ${clock(seconds)}`;
}

function snippetRow({ name, size = '', text }) {
  const button = make('button', { type: 'button', className: 'quiet', textContent: 'Copy' });
  button.setAttribute('aria-label', `Copy ${name}`);
  button.addEventListener('click', () => copy(text, button));
  const head = make('span', { className: 'name', textContent: size === '' ? name : `${name}, ${size}` });
  return make('div', { className: 'snippet' }, head, make('code', { textContent: text }), button);
}

function open(stream, seconds) {
  opened = stream;
  at('watch').hidden = false;
  at('watch-title').textContent = stream.title;
  at('watch-facts').textContent = factsFor(stream, renditions);
  at('snippets').replaceChildren(...snippetsFor(stream, origin).map(snippetRow));
  document.title = `${stream.title} · Catalogue`;
  openStream(stream, seconds);
  nameShareButton();
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

/** A service that has more than the catalogue says so in a header; these files alone, on any server, have no such links. */
function showService(header) {
  const links = linksOf(header ?? '');
  at('service').replaceChildren(...links.map(({ path, title }) => make('a', { href: path, textContent: title })));
  at('service').hidden = links.length === 0;
}

async function readDocument() {
  const response = await fetch('/api/streams.json', { headers: { accept: 'application/json' } });
  showService(response.headers.get('link'));
  if (!response.ok) throw new Error(`the catalogue answered ${response.status}`);
  return response.json();
}

async function start() {
  const document_ = await again(readDocument);
  if (document_.version !== KNOWN_VERSION) throw new Error(`this page does not know version ${document_.version}`);
  streams = document_.streams;
  renditions = document_.renditions;
  at('updated').textContent = `${counted(streams.length)}, updated ${document_.updated}`;
  cards = streams.map(card);
  at('grid').replaceChildren(...cards.map(({ item }) => item));
  showList();
  followAddress();
}

at('search').addEventListener('input', showList);
at('share').addEventListener('click', (event) => {
  const link = new URL(routeOf(opened.id, position()), window.location.href).href;
  copy(link, event.currentTarget);
});
window.addEventListener('hashchange', followAddress);
at('video').addEventListener('timeupdate', nameShareButton);
at('key-list').append(
  ...keyList.flatMap(([key, text]) => [make('dt', { textContent: key }), make('dd', { textContent: text })]),
);
at('keys-open').addEventListener('click', () => at('keys').showModal());
at('keys-close').addEventListener('click', () => at('keys').close());
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || at('keys').open) return;
  if (event.key === 'Escape' && opened !== null && !document.fullscreenElement) window.location.hash = '';
  if (event.target instanceof HTMLInputElement && event.target.type === 'search') return;
  if (event.key === '?' && opened !== null) at('keys').showModal();
  if (event.key !== '/') return;
  event.preventDefault();
  at('search').focus();
});
start().catch((error) => {
  at('status').textContent = `The catalogue could not be read: ${error.message}.`;
});
