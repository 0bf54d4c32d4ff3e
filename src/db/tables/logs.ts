// What instances printed.
export interface LogTables {
  /** How far the log of an instance has been collected. */
  log_stream: {
    instance_id: string;
    project_id: string;
    environment: string;
    revision: number;
    /** In the engine's log, behind the last line that is stored; null: none is. */
    position: string | null;
    /** The time of the last line, from which on times only rise. */
    latest: string;
    /** Of its next segment. */
    seq: number;
    /** Rises with each segment: of two processes that collect the same log, one is refused. */
    version: number;
    updated_at: number;
  };
  /** Some lines of one instance, in their order. The last one of an instance grows until it is large enough. */
  log_segment: {
    instance_id: string;
    seq: number;
    project_id: string;
    environment: string;
    revision: number;
    /** Of its first and its last line. */
    from_at: number;
    to_at: number;
    lines: number;
    raw_bytes: number;
    /** Compressed. */
    bytes: number;
    /** Where its bytes are, and under which name. */
    place: LogPlace;
    blob: string;
    updated_at: number;
  };
  /** The bytes of segments, where they are kept in the database. */
  log_blob: { id: string; project_id: string; environment: string; data: Uint8Array; created_at: number };
}

export type LogPlace = 'files' | 'database' | 's3';
