// The thread that decompresses and searches segments, so that a search holds up nothing else.
import { parentPort } from 'node:worker_threads';
import { decompress } from '../store/segment-encoding.ts';
import { type ScanQuery, scan } from './scan.ts';

export interface ScanJob {
  id: number;
  bytes: Uint8Array;
  rawBytes: number;
  query: ScanQuery;
}

parentPort!.on('message', ({ id, bytes, rawBytes, query }: ScanJob) => {
  try {
    parentPort!.postMessage({ id, entries: scan(decompress(bytes, rawBytes), query) });
  } catch (error) {
    parentPort!.postMessage({ id, failure: (error as Error).message });
  }
});
