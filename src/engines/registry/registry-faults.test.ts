import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseImage } from '../../contract/references.ts';
import type { EngineFault } from '../engine.ts';
import { pullError, pullFault } from './registry-faults.ts';
import { publicReason } from './registry-reasons.ts';

const resolving =
  'failed to pull and unpack image "registry.example/team/shop:v1": failed to resolve reference "registry.example/team/shop:v1"';
const failedWith = 'pulling from host registry.example failed with status code [manifests v1]';

// What Docker 20 to 29 and Podman say, word for word.
const said: [fault: EngineFault, statusCode: number | null, message: string][] = [
  ['image_not_found', 404, 'manifest for registry.example/team/shop:v1 not found: manifest unknown: manifest unknown'],
  ['image_not_found', 404, 'failed to resolve reference "registry.example/team/shop:v1": not found'],
  ['image_not_found', null, 'reading manifest v1 in registry.example/team/shop: manifest unknown'],
  ['image_not_found', null, 'name unknown: The repository with name team/shop does not exist in the registry'],
  ['image_not_found', 500, 'no matching manifest for linux/arm64/v8 in the manifest list entries'],
  ['image_denied', 404, "pull access denied for team/shop, repository does not exist or may require 'docker login'"],
  ['image_denied', 500, 'Get "https://registry.example/v2/team/shop/manifests/v1": no basic auth credentials'],
  ['image_denied', 500, 'Head "https://registry.example/v2/": unauthorized: authentication required'],
  ['image_denied', 500, 'unexpected status from HEAD request to https://registry.example/v2/: 403 Forbidden'],
  [
    'registry_unreachable',
    500,
    'Get "https://registry.example/v2/": dial tcp 127.0.0.1:1: connect: connection refused',
  ],
  ['registry_unreachable', 500, 'Get "https://registry.example/v2/": dial tcp: lookup registry.example: no such host'],
  ['registry_unreachable', 500, 'Get "https://registry.example/v2/": x509: certificate signed by unknown authority'],
  ['registry_failing', 500, 'received unexpected HTTP status: 503 Service Unavailable'],
  ['registry_failing', 500, 'Get "https://registry.example/v2/": net/http: TLS handshake timeout'],
  ['registry_failing', 500, 'Get "https://registry.example/v2/": context deadline exceeded (Client.Timeout exceeded)'],
  ['registry_failing', 500, 'Get "https://registry.example/v2/": EOF'],
  ['registry_unreachable', 500, 'Get "https://registry.example/v2/": http: server gave HTTP response to HTTPS client'],
  [
    'registry_unreachable',
    500,
    'Get "http://mirror.example/v2/": dial tcp: lookup mirror.example on 10.0.0.2:53: server misbehaving',
  ],
  ['registry_failing', null, 'read tcp 10.0.0.1:43210->10.0.0.9:443: read: connection reset by peer'],
  // As kubelets of 1.34 to 1.36 pass on what containerd says: the status comes first, whatever else is in the text.
  ...(
    [
      ['image_not_found', 'NotFound', `${resolving}: registry.example/team/shop:v1: not found`],
      ['image_not_found', 'NotFound', `${resolving}: connection refused by mirror.example, no access: denied`],
      ['image_denied', 'PermissionDenied', `${resolving}: the image does not exist`],
      ['image_denied', 'Unauthenticated', `${resolving}: not found`],
      ['registry_unreachable', 'Unknown', `${resolving}: failed to do request: dial tcp 10.0.0.9:443: i/o timeout`],
    ] as const
  ).map(
    ([fault, code, text]) => [fault, null, `rpc error: code = ${code} desc = ${text}`] as [EngineFault, null, string],
  ),
  ['image_not_found', null, `${resolving}: registry.example/team/shop:v1: not found`],
  ['image_denied', null, `${resolving}: ${failedWith}: 401 Unauthorized`],
  [
    'image_denied',
    null,
    `${resolving}: unexpected status from HEAD request to https://registry.example/v2/x: 403 Not found`,
  ],
  [
    'registry_failing',
    null,
    `${resolving}: unexpected status from HEAD request to https://registry.example/v2/x: 502 Not found`,
  ],
  ['registry_rate_limited', 500, 'toomanyrequests: You have reached your pull rate limit'],
  [
    'registry_rate_limited',
    429,
    'unexpected status from GET request to https://registry.example/v2/: 429 Too Many Requests',
  ],
  ['registry_rate_limited', 500, 'denied: requested access is denied: rate limit exceeded'],
  ['unavailable', null, 'write /var/lib/docker/tmp/GetImageBlob1: no space left on device'],
];

test('what is said of a pull that failed becomes its fault', () => {
  const reference = parseImage('registry.example/team/shop:v1')!;
  for (const [fault, statusCode, message] of said)
    assert.equal(pullFault(reference, message, statusCode), fault, message);
});

test('the name of an image is not taken for what the registry said', () => {
  const reference = parseImage('registry.example/denied/unauthorized:v1')!;
  const message = 'manifest for registry.example/denied/unauthorized:v1 not found: manifest unknown';
  assert.equal(pullFault(reference, message, 404), 'image_not_found');
});

test('a tenant is told fixed words; what was said goes to the operator', () => {
  const reference = parseImage('127.0.0.1:9000/team/shop:v1')!;
  const page = 'error parsing HTTP 404 response body: invalid character: "<h1>Payroll</h1> password: hunter2"';
  for (const [fault, statusCode, message] of [...said, ['unavailable', null, page] as const]) {
    const error = pullError(reference, `Payroll hunter2 ${message}`, statusCode);
    assert.equal(error.fault, fault);
    assert.doesNotMatch(error.message, /Payroll|hunter2|10\.0\.0|\/var\/lib|Get "/);
    assert.match((error.cause as Error).message, /Payroll hunter2/);
  }
  assert.equal(publicReason('received unexpected HTTP status: 503 Service Unavailable'), 'status 503');
  assert.equal(publicReason('the secret of the page'), null);
});
