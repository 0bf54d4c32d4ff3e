// What differs between the sites that this folder serves: their headers, and what is kept in memory. Paths are relative
// to the site's root.
export interface FileRules {
  /** On every response, errors included; names and values in turn, as writeHead takes them. */
  commonHeaders: string[];
  cacheControlOf(path: string): string;
  typeOf(path: string): string;
  /** Whether the file may have compressed forms (`x.br`, `x.gz`) stored beside it. */
  hasCompressedForms(path: string): boolean;
  /** A file up to this size is kept in memory; a larger one is read from disk for each response. */
  maxBytesInMemory(path: string): number;
}
