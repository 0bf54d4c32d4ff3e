// What the built-in proxy allows, in one place. A connection, a request or an instance that goes beyond is cut off, so
// that none of them can hold what the others need.

export interface ProxyLimits {
  /** Of a request's head; 431 beyond. The same bound holds for the heads of answers (502). */
  headerBytes: number;
  /** Header lines of a request; 431 beyond. */
  headerCount: number;
  /** Until the head of a request is complete; 408. */
  requestHeadMs: number;
  /** Between two requests of one connection. */
  keepAliveMs: number;
  /** Without a byte in either direction while a body travels, on either side. */
  idleMs: number;
  /** Until an instance takes a connection; then another one is asked. */
  connectMs: number;
  /** Since the request began, after which no further instance is tried. */
  retryMs: number;
  /** Until the head of the answer; 504. */
  answerHeadMs: number;
  /** Connections of clients at a time, with and without TLS; more are closed at once. */
  connections: number;
  /** How long an instance that took no connection is passed over while others can answer. */
  ejectMs: number;
  /** An upgraded connection without a byte in either direction. */
  tunnelIdleMs: number;
  /** Kept connections to instances; less than the five seconds after which many servers close theirs. */
  instanceKeepAliveMs: number;
  /** Until a TLS handshake is done. */
  handshakeMs: number;
  /** Of one HTTP/2 session at a time. */
  streams: number;
  /** What a client may send of one upload, and of all of a session, before we have taken it. */
  streamWindowBytes: number;
  sessionWindowBytes: number;
  /** Of a session's queues and heads; a session that needs more gets no new streams. */
  sessionMegabytes: number;
  /** Streams that a client may take back at once and each second; a session beyond that is closed (CVE-2023-44487). */
  streamResets: number;
  streamResetsPerSecond: number;
}

export const defaultLimits: ProxyLimits = {
  headerBytes: 32 * 1024,
  headerCount: 128,
  requestHeadMs: 15_000,
  keepAliveMs: 65_000,
  idleMs: 120_000,
  connectMs: 2000,
  retryMs: 10_000,
  answerHeadMs: 60_000,
  connections: 20_000,
  ejectMs: 1000,
  tunnelIdleMs: 3_600_000,
  instanceKeepAliveMs: 4000,
  handshakeMs: 10_000,
  streams: 100,
  streamWindowBytes: 256 * 1024,
  sessionWindowBytes: 1024 * 1024,
  sessionMegabytes: 32,
  streamResets: 500,
  streamResetsPerSecond: 50,
};

/** An instance that stands still is noticed before its client, who waits for it. */
export const clientIdleMs = ({ idleMs, answerHeadMs, retryMs }: ProxyLimits): number =>
  Math.max(idleMs, answerHeadMs + retryMs) + 2000;
