interface Line {
  text: string;
}

export const bytesOf = (lines: Line[]): number => lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);

/** The latest of the lines, oldest first, whose text takes no more than this. */
export function latestThatFit<L extends Line>(lines: L[], maxBytes: number): L[] {
  let bytes = 0;
  let from = lines.length;
  while (from > 0) {
    bytes += Buffer.byteLength(lines[from - 1]!.text);
    if (bytes > maxBytes) break;
    from--;
  }
  return lines.slice(from);
}
