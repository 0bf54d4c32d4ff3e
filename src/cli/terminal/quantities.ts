// Durations, times, rates and counts as people read them.

export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function ago(iso: string | null, now: number): string {
  if (iso === null) return '-';
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  if (seconds < 0)
    return `in ${span(-seconds * 1000)
      .split(' ')
      .slice(0, 2)
      .join(' ')}`;
  return `${span(seconds * 1000)
    .split(' ')
    .slice(0, 2)
    .join(' ')} ago`;
}

export const timeOfDay = (iso: string): string => new Date(iso).toTimeString().slice(0, 8);

export const percent = (rate: number | null): string => (rate === null ? '-' : `${(rate * 100).toFixed(1)} %`);

export const milliseconds = (ms: number | null): string => {
  if (ms === null) return '-';
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
};

export const count = (number: number): string => String(number).replaceAll(/\B(?=(\d{3})+$)/g, ',');

export const plural = (number: number, one: string, many = `${one}s`): string =>
  `${count(number)} ${number === 1 ? one : many}`;
