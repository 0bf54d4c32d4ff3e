// SHA256SUMS in the format of coreutils: digest, two spaces, path relative to media/, sorted by path.
export function formatSums(digests: Map<string, string>): string {
  const paths = [...digests.keys()].sort((a, b) => (a < b ? -1 : 1));
  return paths.map((path) => `${digests.get(path)}  ${path}\n`).join('');
}

export function parseSums(text: string): { digests: Map<string, string>; faults: string[] } {
  const digests = new Map<string, string>();
  const faults: string[] = [];
  const lines = text.split('\n');
  if (lines.pop() !== '') faults.push('the last line does not end');
  let previous = '';
  for (const [i, line] of lines.entries()) {
    const match = /^([0-9a-f]{64}) [ *](.+)$/.exec(line);
    if (match === null) {
      faults.push(`line ${i + 1} is not "<sha256>  <path>"`);
      continue;
    }
    const [, digest, path] = match as unknown as [string, string, string];
    if (path.startsWith('/') || path.split('/').includes('..')) faults.push(`line ${i + 1} leads outside media/`);
    if (path <= previous) faults.push(`line ${i + 1} is out of order`);
    previous = path;
    digests.set(path, digest);
  }
  return { digests, faults };
}
