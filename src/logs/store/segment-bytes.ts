// Where the bytes of segments are kept: files of the data directory, rows of the database, or objects of an S3 bucket. One
// interface, and one conformance suite (test/both-databases/logs/places.test.ts).
import type { LogPlace } from '../../db/tables.ts';
import type { EnvironmentKey } from '../../environments/environment-key.ts';

export interface SegmentBytes {
  /** Done before the segment is known: bytes without a segment are swept, a segment without bytes must not be. */
  save(key: EnvironmentKey, blob: string, bytes: Buffer): Promise<void>;
  /** null: they were deleted meanwhile. */
  read(key: EnvironmentKey, blob: string): Promise<Buffer | null>;
  delete(key: EnvironmentKey, blobs: readonly string[]): Promise<void>;
  /**
   * Deletes what no segment refers to: at once where its environment is gone, else when it is older than `olderThanMs`,
   * because a segment may be about to.
   */
  sweep(known: KnownBlobs, olderThanMs: number): Promise<void>;
}

export interface KnownBlobs {
  hasEnvironment(key: EnvironmentKey): Promise<boolean>;
  /** Those of them that segments refer to. */
  referredTo(blobs: readonly string[]): Promise<ReadonlySet<string>>;
}

/** `here`: where new segments go. Old ones stay where they are. */
export interface Places {
  here: LogPlace;
  of(place: LogPlace): SegmentBytes | null;
}
