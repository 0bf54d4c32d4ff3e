// The thread that decompresses and searches segments, and reads the fields of what it finds, so that none of this holds up
// anything else.
import { parentPort } from 'node:worker_threads';
import { decompress } from '../store/segment-encoding.ts';
import { type LineFields, readLineFields } from './line-fields.ts';
import { type Entry, type ScanQuery, scan } from './scan.ts';

export interface ScanJob {
  id: number;
  bytes: Uint8Array;
  rawBytes: number;
  query: ScanQuery;
}

export interface ReadEntry extends Entry {
  fields: LineFields;
}

parentPort?.on('message', ({ id, bytes, rawBytes, query }: ScanJob) => {
  try {
    const entries = scan(decompress(bytes, rawBytes), query);
    const read: ReadEntry[] = entries.map((entry) => ({ ...entry, fields: readLineFields(entry.text) }));
    parentPort!.postMessage({ id, entries: read });
  } catch (error) {
    parentPort!.postMessage({ id, failure: (error as Error).message });
  }
});
