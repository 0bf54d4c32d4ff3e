// The configuration of HAProxy that never changes at run time: listeners, limits, and how a request finds its backend.
// What does change is in maps (which host goes where, challenges), in backends (one file each) and in the list of
// certificates. A request is treated as the built-in proxy treats it; docs/traffic.md lists the differences. No I/O.
import { buckets, canaryLimit, canaryOffset, rotationStep } from '../balance.ts';
import type { EnvironmentRoutes } from '../data-plane.ts';
import { clientIdleMs, type ProxyLimits } from '../proxy/limits.ts';
import { addressPattern, probePaths } from '../proxy/probe.ts';
import type { HaproxyFiles } from './haproxy-files.ts';

export interface HaproxySettings {
  /** `address:port` to bind, for plain HTTP. */
  http: string;
  /** For TLS; null: no listener. */
  https: string | null;
  /** Where plain HTTP requests for hosts with a certificate are redirected to; null: they are not. */
  redirectPort: number | null;
  threads: number;
  limits: ProxyLimits;
  /** How long requests may go on after a reload or stop. */
  drainS: number;
  /** Ranges of addresses, `10.0.0.0/8`. */
  trustedProxies: readonly string[];
}

/** What a client may not claim, also with underscores, which many instances take for hyphens; and what ends here. */
const removedHeaders = [
  ...['x[-_]forwarded[-_].*', 'x[-_]real[-_]ip', 'forwarded', 'proxy', 'te', 'keep[-_]alive', 'http2[-_]settings'],
  ...['proxy[-_](connection|authorization|authenticate)', 'content_length', 'transfer_encoding'],
].join('|');
const ciphers = [
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ...['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');

const routeField = (name: keyof typeof fieldNumbers): string => `var(txn.route),field(${fieldNumbers[name]},|)`;

/** Of a path, only the first parts count. */
const loggedPath = 100;

/** How much of the log is kept while it is not read: some hundred thousand requests. */
const logBytes = 64 * 1024 * 1024;

export function configText(settings: HaproxySettings, files: HaproxyFiles): string {
  return [
    globalSection(settings, files),
    defaultsSection(settings.limits),
    ...frontends(settings, files),
    'backend visitors',
    '    stick-table type string len 255 size 200k expire 1h store gpc0',
    '',
    'backend challenges',
    `    server sluice unix@${files.challengeSocket}`,
    '',
    'backend addresses',
    '    stick-table type ipv6 size 200k expire 10m store conn_cur',
    '',
  ].join('\n');
}

function globalSection({ threads, limits, drainS }: HaproxySettings, files: HaproxyFiles): string {
  return `# Written by Sluice; changes are overwritten.
global
    stats socket ${files.adminSocket} mode 600 level admin expose-fd listeners
    stats timeout 24d
    no strict-limits
    nbthread ${threads}
    maxconn ${limits.connections}
    hard-stop-after ${drainS}s
    tune.bufsize ${limits.headerBytes}
    tune.http.maxhdr ${limits.headerCount}
    tune.h2.max-concurrent-streams ${limits.streams}
    ssl-default-bind-options ssl-min-ver TLSv1.2
    ssl-default-bind-ciphers ${ciphers}
    log ring@requests format raw local0

ring requests
    format raw
    maxlen 1024
    size ${logBytes}
`;
}

function defaultsSection(limits: ProxyLimits): string {
  return `defaults
    mode http
    log global
    balance roundrobin
    option abortonclose
    option http-keep-alive
    option forwardfor
    option idle-close-on-response
    option redispatch 1
    option allbackups
    http-reuse safe
    retries 3
    retry-on conn-failure empty-response
    timeout connect ${limits.connectMs}ms
    timeout client ${limits.idleMs}ms
    timeout server ${clientIdleMs(limits)}ms
    timeout queue ${limits.retryMs}ms
    timeout http-request ${limits.requestHeadMs}ms
    timeout http-keep-alive ${limits.keepAliveMs}ms
    timeout tunnel ${limits.tunnelIdleMs}ms
    timeout client-fin 5s
    log-format "%[date(0,ms)] %[var(txn.route)] %ST %Tw %Tc %Tr %Ta %ts %U %[var(txn.length)] %s %[var(txn.unit)]"
${ownErrors()}`;
}

/** Responses of HAProxy itself, in the form of the built-in proxy's. */
function ownErrors(): string {
  const texts: [number, string][] = [
    [400, 'the request is malformed'],
    [408, 'the request did not arrive in time'],
    [502, 'the instance did not give an answer'],
    [503, 'no instance can answer at the moment'],
    [504, 'the instance did not answer in time'],
  ];
  return texts
    .map(
      ([status, text]) =>
        `    http-error status ${status} ${plainText(text)}${status === 503 ? ' hdr retry-after 1' : ''}\n`,
    )
    .join('');
}

/** Not `unique-id-format`: that makes one for the log of every request. All of these stay the same during a request. */
const requestId = 'req_%{+X}o%Ts%rt%pid';

const plainText = (text: string): string =>
  `content-type "text/plain; charset=utf-8" lf-string "${text} (${requestId})\\n" hdr cache-control no-store hdr x-content-type-options nosniff hdr x-request-id ${requestId}`;

const refuse = (status: number, text: string, condition: string): string =>
  `    http-request return status ${status} ${plainText(text)} if ${condition}`;

/** For a request whose sender may see another end of it than HAProxy does: nothing behind it is read. */
const refuseAndClose = (status: number, text: string, condition: string): string =>
  `    http-request return status ${status} ${plainText(text)} hdr connection close if ${condition}`;

const malformed = (condition: string): string => refuseAndClose(400, 'the request is malformed', condition);

function frontends(settings: HaproxySettings, files: HaproxyFiles): string[] {
  const { http, https } = settings;
  const plain: Listener = { address: http, options: '', proto: 'http' };
  if (https === null) return [frontendSection('visitors-in', plain, settings, files)];
  const options = ` ssl crt-list ${files.certificateList} strict-sni alpn h2,http/1.1 tls-ticket-keys ${files.ticketKeys}`;
  const secure: Listener = { address: https, options, proto: 'https' };
  return [
    frontendSection('visitors-in', plain, settings, files),
    frontendSection('secure-visitors-in', secure, settings, files),
  ];
}

interface Listener {
  address: string;
  /** Of its bind line. */
  options: string;
  proto: 'http' | 'https';
}

function frontendSection(name: string, listener: Listener, settings: HaproxySettings, files: HaproxyFiles): string {
  return [
    `frontend ${name}`,
    `    bind ${listener.address}${listener.options}`,
    ...(settings.limits.connectionsPerAddress === 0 ? [] : addressLimit(settings)),
    ...shortWay(listener, files),
    ...requestChecks(),
    ...trustedClient(settings),
    ...routing(settings, files),
    ...balancing(),
    ...forwarding(),
    ...['keep-alive', 'proxy-connection', 'proxy-authenticate'].map(
      (header) => `    http-response del-header ${header}`,
    ),
    `    http-response return status 502 ${plainText('the instance did not give an answer')} if { status ge 600 }`,
    `    use_backend %[${routeField('backend')}] if is_short`,
    '    use_backend challenges if is_challenge',
    '    use_backend %[var(txn.backend)]',
    '',
  ].join('\n');
}

/**
 * What no request on the short way has, looked for in all its headers at once: characters that do not belong there,
 * folded lines, a body without a length or with a long number for it, upgrades, expectations, headers that are removed.
 */
const unusualHeaders = [
  '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]|  ',
  '(^|\\n)(expect|transfer.encoding|upgrade|content_length|content-length: [^\\r]{16}|te:|http2',
  'x.forwarded|x.real|forwarded|proxy|keep.alive)',
].join('|');

/**
 * Each rule costs time, and for most requests nearly all of them change nothing. One that meets these conditions is such
 * a request: its host is in the map as it stands, so it is well formed; its route has neither a canary nor a redirect;
 * and it has nothing that is checked or removed further down. Any other takes the long way, through every rule. What all
 * requests of a connection share is made once, and nothing is copied to a variable that is read only twice.
 */
function shortWay({ address, proto }: Listener, files: HaproxyFiles): string[] {
  const takeIf = (condition: string): string =>
    `    http-request set-var(txn.short) bool(true) if plain_route ${condition} one_host !unusual_method !reserved_path !unusual_headers`;
  const sender = (node: string): string => `"for=${node};proto=${proto};host="`;
  const add = (header: string, value: string): string => `    http-request add-header ${header} ${value} if is_short`;
  const isSecure = proto === 'https';
  return [
    '    acl from_ipv6 src -m sub :',
    `    tcp-request connection set-var-fmt(sess.sender) ${sender('%[src]')} if !from_ipv6`,
    `    tcp-request connection set-var-fmt(sess.sender) ${sender('\\"[%[src]]\\"')} if from_ipv6`,
    ...(isSecure ? ['    tcp-request session set-var(sess.server_name) ssl_fc_sni'] : []),
    `    http-request set-var(txn.route) req.hdr(host),map_str(${files.routes})`,
    `    http-request set-var(txn.route) req.hdr(host),host_only,map_str(${files.routes}) if !{ var(txn.route) -m found } { req.hdr(host),port_only lt 100000 }`,
    `    acl plain_route var(txn.route) -m end |${routeKinds.plain}${isSecure ? ` |${routeKinds.secure}` : ''}`,
    '    acl unusual_method method TRACE CONNECT',
    '    acl reserved_path path_beg /.well-known/',
    '    acl one_host req.hdr_cnt(host) eq 1',
    `    acl unusual_headers req.hdrs -m reg '${unusualHeaders}'`,
    ...(isSecure
      ? [
          '    acl of_connection req.hdr(host),host_only,strcmp(sess.server_name) eq 0',
          takeIf('of_connection { req.ver 1.1 } { url_beg / }'),
          takeIf("of_connection { req.ver 2.0 } { url -m reg '^https://[^/?#@]+/' }"),
        ]
      : [takeIf('{ req.ver 1.1 } { url_beg / }')]),
    '    acl is_short var(txn.short) -m bool',
    '    http-request set-var(txn.length) req.hdr(content-length) if is_short',
    add('X-Forwarded-Host', '%[req.hdr(host)]'),
    add('X-Forwarded-Proto', proto),
    add('X-Forwarded-Port', address.slice(address.lastIndexOf(':') + 1)),
    add('Forwarded', '%[var(sess.sender)]\\"%[req.hdr(host)]\\"'),
    `${keepNoCopy} is_short`,
    '    http-request allow if is_short',
    '    http-request set-var(txn.authority) req.hdr(host)',
  ];
}

/** Of IPv6 a /64 counts as one address. */
function addressLimit({ limits, trustedProxies }: HaproxySettings): string[] {
  const others = trustedProxies.length === 0 ? '' : ` if !{ src ${trustedProxies.join(' ')} }`;
  return [
    `    tcp-request connection track-sc1 src,ipmask(32,64) table addresses${others}`,
    `    tcp-request connection reject if { sc1_conn_cur gt ${limits.connectionsPerAddress} }`,
  ];
}

/** What HAProxy's parser lets through and the built-in proxy refuses. HTTP/2 has its target in the form of an address, too. */
function requestChecks(): string[] {
  return [
    refuseAndClose(405, 'this method is not supported', '{ method TRACE CONNECT }'),
    refuseAndClose(505, 'this version of HTTP is not supported', '!{ req.ver 1.0 1.1 2.0 }'),
    refuseAndClose(
      417,
      'this expectation is not supported',
      '{ req.hdr(expect) -m found } !{ req.hdr(expect) -i 100-continue }',
    ),
    malformed('!{ req.hdr_cnt(host) eq 1 }'),
    malformed('!{ req.hdr(host),lower -m reg ^([a-z0-9_.-]+|\\[[0-9a-f:.]+\\])(:[0-9]{1,5})?$ }'),
    malformed("!{ url -m reg -i '^(/|https?://[^/?#@]+([/?]|$))' }"),
    malformed("{ req.hdrs -m reg '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]' }"),
    // Longer ones overflow in HAProxy 2.6, which then takes the body for the next request.
    malformed('{ req.hdr(content-length) -m len gt 15 }'),
    malformed('{ req.hdr(transfer-encoding) -m found } { req.ver 1.0 }'),
    malformed('{ req.hdr(upgrade) -m found } { req.hdr(transfer-encoding) -m found }'),
    malformed('{ req.hdr(upgrade) -m found } { req.hdr(content-length) -m found } !{ req.hdr(content-length) 0 }'),
    ...ambiguousRequests(),
    // http-01 (RFC 8555, 8.3): over plain HTTP and for any host.
    '    http-request set-var(txn.challenge) bool(true) if { path_reg ^/\\.well-known/acme-challenge/[A-Za-z0-9_-]{1,200}$ } { method GET HEAD } !{ ssl_fc }',
    '    acl is_challenge var(txn.challenge) -m bool',
    '    http-request set-var(txn.host) req.hdr(host),host_only,lower,rtrim(.)',
    refuse(
      421,
      'this connection was made for another host name',
      '{ ssl_fc } !{ ssl_fc_sni,lower,strcmp(txn.host) eq 0 }',
    ),
  ];
}

/**
 * HAProxy joins folded lines (each line end becomes a space) and accepts a chunk that ends in a bare line feed. Its rules see
 * the result only, so what may have been such a request is the last one of its connection.
 */
function ambiguousRequests(): string[] {
  return [
    '    http-request set-var(txn.last) bool(true) if { req.hdr(transfer-encoding) -m found }',
    '    http-request set-var(txn.last) bool(true) if { req.hdrs -m sub "  " }',
    // What follows an upgrade that the instance does not take was meant for another protocol.
    '    http-request set-var(txn.last) bool(true) if { req.hdr(upgrade) -m found }',
    '    http-after-response set-header Connection close if { var(txn.last) -m bool } !{ status 101 }',
  ];
}

/** X-Forwarded-For is read from its end, as long as trusted proxies wrote it; a chain of four is as long as any. */
function trustedClient({ trustedProxies }: HaproxySettings): string[] {
  const lines = ['    http-request set-var(txn.proto) ssl_fc,iif(https,http)'];
  if (trustedProxies.length === 0) return lines;
  const ranges = trustedProxies.join(' ');
  lines.push(
    `    http-request set-var(txn.proto) req.hdr(x-forwarded-proto) if { src ${ranges} } { req.hdr(x-forwarded-proto) -m reg ^https?$ }`,
  );
  for (const back of [1, 2, 3, 4]) {
    lines.push(
      `    http-request set-src req.hdr_ip(x-forwarded-for,-${back}) if { src ${ranges} } { req.hdr_ip(x-forwarded-for,-${back}) -m found }`,
    );
  }
  return lines;
}

function routing({ redirectPort, https }: HaproxySettings, files: HaproxyFiles): string[] {
  const port = redirectPort === 443 ? '' : `:${redirectPort}`;
  const redirect = `    http-request return status 308 ${plainText('this address is served with TLS')} hdr location "https://%[var(txn.host)]${port}%[capture.req.uri]" if { ${routeField('secure')} -m str 1 } { var(txn.proto) -m str http } !is_challenge`;
  return [
    `    http-request set-var(txn.route) var(txn.host),map_str(${files.routes})`,
    ...probeRules(),
    refuse(404, 'nothing is deployed under this host name', '!is_challenge !{ var(txn.route) -m found }'),
    ...(https !== null && redirectPort !== null ? [redirect] : []),
    '    http-request set-var(txn.length) req.hdr(content-length)',
    `    http-request set-var(txn.backend) ${routeField('backend')}`,
    `    http-request set-var(txn.limit) ${routeField('limit')},add(0)`,
  ];
}

/** The rule of traffic/balance.ts: a visitor's bucket, and a range of buckets that sees the canary. */
function balancing(): string[] {
  const chosen = 'has_canary { var(txn.left) -m int lt 0 }';
  return [
    '    acl has_canary var(txn.limit) -m int gt 0',
    `    http-request set-var(txn.canary) ${routeField('canaryBackend')} if has_canary`,
    `    http-request set-var(txn.offset) ${routeField('offset')},add(0) if has_canary`,
    '    acl known_visitor req.cook(sluice_revision) -m reg ^[0-9]{1,4}$',
    '    http-request track-sc0 var(txn.host) table visitors if has_canary !known_visitor',
    // Counts and reads in one step: between two, a visitor on another thread would get the same number.
    `    http-request set-var(txn.bucket) sc0_inc_gpc0(visitors),mul(${rotationStep}),mod(${buckets}) if has_canary !known_visitor`,
    '    http-request set-var(txn.cookie) var(txn.bucket) if has_canary !known_visitor',
    '    http-request set-var(txn.bucket) req.cook(sluice_revision),add(0) if has_canary known_visitor',
    `    http-request set-var(txn.left) var(txn.bucket),add(txn.offset),mod(${buckets}),sub(txn.limit) if has_canary`,
    // A side without instances leaves its visitors to the other.
    '    http-request set-var(txn.left) int(0) if has_canary { var(txn.canary),nbsrv -m int eq 0 }',
    '    http-request set-var(txn.left) int(-1) if has_canary { var(txn.backend),nbsrv -m int eq 0 } !{ var(txn.canary),nbsrv -m int eq 0 }',
    `    http-request set-var(txn.revision) ${routeField('revision')} if has_canary`,
    `    http-request set-var(txn.revision) ${routeField('canaryRevision')} if ${chosen}`,
    `    http-request set-var(txn.backend) var(txn.canary) if ${chosen}`,
    // Which side got it, whose request it is, and what for: logged while a canary runs.
    `    http-request set-var-fmt(txn.unit) %[var(txn.revision)]|%[var(txn.bucket)]|%[path,bytes(0,${loggedPath})] if has_canary`,
    '    http-response add-header set-cookie "sluice_revision=%[var(txn.cookie)]; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax" if { var(txn.cookie) -m found }',
  ];
}

function forwarding(): string[] {
  return [
    "    http-request replace-uri '^[^/]*//[^/?]*/?(.*)$' '/\\1' if !{ url_beg / } { req.ver 1.0 1.1 }",
    '    http-request del-header Upgrade if { req.hdr(upgrade) -m reg -i \\bh2c?\\b }',
    `    http-request del-header ^(${removedHeaders})$ -m reg`,
    // Added, not set: whatever the client sent under these names was removed just now. X-Forwarded-For is an option.
    '    http-request add-header X-Forwarded-Proto %[var(txn.proto)]',
    '    http-request add-header X-Forwarded-Host %[var(txn.authority)]',
    '    http-request add-header X-Forwarded-Port %[dst_port]',
    '    http-request add-header Forwarded for=%[src];proto=%[var(txn.proto)];host=\\"%[var(txn.authority)]\\" if !from_ipv6',
    '    http-request add-header Forwarded for=\\"[%[src]]\\";proto=%[var(txn.proto)];host=\\"%[var(txn.authority)]\\" if from_ipv6',
    keepNoCopy,
  ];
}

/** HAProxy copies requests that it may send a second time. */
const keepNoCopy = '    http-request disable-l7-retry if !{ method GET HEAD OPTIONS PUT DELETE }';

/**
 * Health checks of load balancers and kubelets, answered as proxy/probe.ts answers them. They come after the route
 * was looked up: an address may be a host that is routed.
 */
function probeRules(): string[] {
  const answer = (status: number, text: string, condition: string) =>
    `    http-request return status ${status} content-type "text/plain; charset=utf-8" string "${text}\\n" ` +
    `hdr cache-control no-store if !has_route by_address !{ ssl_fc } { method GET HEAD } ${condition}`;
  return [
    `    acl by_address var(txn.host) -m reg ${addressPattern}`,
    '    acl has_route var(txn.route) -m found',
    answer(503, 'stopping', `{ path ${probePaths.ready} } { stopping }`),
    answer(200, 'ok', `{ path ${probePaths.live} ${probePaths.ready} }`),
  ];
}

/** Where each field stands in a value, counted from one as HAProxy does. */
const fieldNumbers = {
  backend: 1,
  canaryBackend: 2,
  offset: 3,
  limit: 4,
  secure: 5,
  project: 6,
  environment: 7,
  revision: 8,
  canaryRevision: 9,
  kind: 10,
} as const;

/** `plain`: neither a canary nor a redirect; `secure`: no canary, and plain HTTP is redirected. */
const routeKinds = { plain: 'plain', secure: 'secure', other: 'other' } as const;

type Field = keyof typeof fieldNumbers;
const fields = Object.keys(fieldNumbers) as Field[];

/**
 * The value of a host in the route map: all that HAProxy has to know of its environment. Changing a share or the
 * backends of an environment is changing this one value. `limit` 0 means that there is no canary.
 */
export function routeValue(
  { project, environment, shares }: EnvironmentRoutes,
  secure: boolean,
  backendOf: (revision: number) => string,
): string {
  const [stable, canary] = shares;
  const values: Record<Field, string | number> = {
    backend: stable ? backendOf(stable.revision) : '-',
    canaryBackend: canary ? backendOf(canary.revision) : '-',
    offset: canary ? canaryOffset(canary.revision) : 0,
    limit: canary ? canaryLimit(canary.percent) : 0,
    secure: secure ? 1 : 0,
    project,
    environment,
    revision: stable?.revision ?? 0,
    canaryRevision: canary?.revision ?? 0,
    kind: routeKinds[!stable || canary ? 'other' : secure ? 'secure' : 'plain'],
  };
  return fields.map((name) => values[name]).join('|');
}

/** What a route is for, as the log has it: its stable revision. */
export function readRoute(value: string): { project: string; environment: string; revision: number } {
  const values = value.split('|');
  const at = (name: Field): string => values[fieldNumbers[name] - 1] ?? '';
  return { project: at('project'), environment: at('environment'), revision: Number(at('revision')) };
}
