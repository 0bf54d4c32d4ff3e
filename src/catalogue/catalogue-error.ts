/** An error that the person who runs a command can fix; `lines` are printed as they are, without a stack. */
export class CatalogueError extends Error {
  readonly lines: string[];

  constructor(lines: string | string[]) {
    const all = Array.isArray(lines) ? lines : [lines];
    super(all.join('\n'));
    this.name = 'CatalogueError';
    this.lines = all;
  }
}

/** Sources failed, and with them everything that was to be published: nothing was. */
export class SourcesFailedError extends CatalogueError {}

/** The code of a failed system call (`ENOENT`, `ENOSPC`…), or an empty string. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
