// Light, dark, or like the system. The choice outlives the session.
import { Cell } from './cell.ts';

export type Theme = 'system' | 'light' | 'dark';
const storageKey = 'sluice-theme';
const themes: Theme[] = ['system', 'light', 'dark'];

const stored = localStorage.getItem(storageKey) as Theme | null;
export const theme = new Cell<Theme>(stored && themes.includes(stored) ? stored : 'system');

const apply = () => {
  document.documentElement.dataset.theme = theme.get();
};
apply();
theme.subscribe(apply);

export function nextTheme(): void {
  const next = themes[(themes.indexOf(theme.get()) + 1) % themes.length]!;
  theme.set(next);
  localStorage.setItem(storageKey, next);
}
