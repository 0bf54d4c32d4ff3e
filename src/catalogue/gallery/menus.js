// What a viewer chooses while a stream plays: captions, language, quality and speed, in one panel. Captions, language and
// speed are remembered for the next stream, in this browser only.

const at = (id) => document.getElementById(id);
const panel = at('settings');
const opener = at('settings-open');

/** Null where nothing was chosen yet, or the browser keeps nothing. */
export function remembered(name) {
  try {
    return localStorage.getItem(`gallery.${name}`);
  } catch {
    return null;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(`gallery.${name}`, value);
  } catch {
    // Private windows may keep nothing.
  }
}

/** Fills one menu; one without a choice is not shown. */
export function fillMenu(name, options, chosen, choose) {
  const select = at(name);
  select.replaceChildren(...options.map(({ value, text }) => new Option(text, value, false, value === chosen)));
  select.onchange = () => choose(select.value);
  select.disabled = options.length < 2;
  select.parentElement.hidden = options.length < 2;
}

export function showChosen(name, value) {
  at(name).value = value;
}

export function openSettings(open) {
  panel.hidden = !open;
  opener.setAttribute('aria-expanded', String(open));
  if (open) panel.querySelector('select:not(:disabled)')?.focus();
}

export const toggleSettings = () => openSettings(panel.hidden);
export const settingsAreOpen = () => !panel.hidden;

opener.addEventListener('click', toggleSettings);
panel.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  // The page would close the stream.
  event.stopPropagation();
  openSettings(false);
  opener.focus();
});
document.addEventListener('pointerdown', (event) => {
  if (!panel.hidden && !panel.contains(event.target) && !opener.contains(event.target)) openSettings(false);
});
