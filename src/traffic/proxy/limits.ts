// The limits of the built-in proxy. A connection, a request or an instance that exceeds one is cut off, so that none of
// them can hold what the others need.

export interface ProxyLimits {
  /** Size of a request's head (431 beyond) and of a response's head (502 beyond). */
  headerBytes: number;
  /** Header lines of a request (431 beyond). */
  headerCount: number;
  /** Until the head of a request is complete (408 after that). */
  requestHeadMs: number;
  /** Between two requests on a connection. */
  keepAliveMs: number;
  /** Without a byte in either direction while a body is sent, to visitors and to instances. */
  idleMs: number;
  /** Until an instance accepts a connection; after that another one is tried. */
  connectMs: number;
  /** Without a byte of a response: after that the instance is asked whether it is there at all. */
  silentMs: number;
  /** Since the request arrived; after that no other instance is tried. */
  retryMs: number;
  /** Responses of the kind 1xx before the one that counts, and the size of their heads together (502 beyond). */
  informationCount: number;
  informationBytes: number;
  /** Until the head of the response (504 after that). */
  answerHeadMs: number;
  /** Visitors' connections at a time, with and without TLS; more are closed at once. */
  connections: number;
  /** The same for one address, or one /64 of IPv6; 0: no such limit. Trusted proxies are excepted. */
  connectionsPerAddress: number;
  /** How long an instance that did not accept a connection is skipped while others can answer. */
  ejectMs: number;
  /** The same where its machine does not answer: each try costs a visitor as long as a connection may take. */
  ejectSilentMs: number;
  /** Without a byte in either direction on an upgraded connection. */
  tunnelIdleMs: number;
  /** Idle connections to instances; less than the five seconds after which many servers close theirs. */
  instanceKeepAliveMs: number;
  /** Until a TLS handshake is complete. */
  handshakeMs: number;
  /** Streams of one HTTP/2 session at a time. */
  streams: number;
  /** Flow control of HTTP/2: what a client may send of one upload, and in a whole session, before it is read. */
  streamWindowBytes: number;
  sessionWindowBytes: number;
  /** Memory for the queues and heads of an HTTP/2 session; one that needs more gets no new streams. */
  sessionMegabytes: number;
  /** Streams that a client may reset, in a burst and each second; a session beyond that is closed (CVE-2023-44487). */
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
  silentMs: 3000,
  retryMs: 10_000,
  informationCount: 16,
  informationBytes: 32 * 1024,
  answerHeadMs: 60_000,
  connections: 20_000,
  connectionsPerAddress: 0,
  ejectMs: 1000,
  ejectSilentMs: 10_000,
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

/** Longer than any wait for an instance: the instance is timed out first, not the visitor that waits for it. */
export const clientIdleMs = ({ idleMs, answerHeadMs, retryMs }: ProxyLimits): number =>
  Math.max(idleMs, answerHeadMs + retryMs) + 2000;
