/** How many letters to add, drop, replace or swap to get from one word to the other. */
export function distance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let r = 1; r <= from.length; r++) {
    const row = [r];
    for (let c = 1; c <= to.length; c++) {
      const differs = from[r - 1] === to[c - 1] ? 0 : 1;
      const least = Math.min(rows[r - 1]![c]! + 1, row[c - 1]! + 1, rows[r - 1]![c - 1]! + differs);
      const swapped = r > 1 && c > 1 && from[r - 1] === to[c - 2] && from[r - 2] === to[c - 1];
      row.push(swapped ? Math.min(least, rows[r - 2]![c - 2]! + 1) : least);
    }
    rows.push(row);
  }
  return rows[from.length]![to.length]!;
}

/** The word that was probably meant, if one is near enough. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const allowed = Math.max(1, Math.floor(word.length / 3));
  const [best] = known
    .map((candidate) => ({ candidate, away: candidate.startsWith(word) ? 0.5 : distance(word, candidate) }))
    .filter(({ away }) => away <= allowed)
    .sort((a, b) => a.away - b.away);
  return word.length < 2 ? undefined : best?.candidate;
}

export const didYouMean = (word: string, known: readonly string[], before = ''): string => {
  const meant = nearest(word, known);
  return meant === undefined ? '' : ` Did you mean ${before}${meant}?`;
};
