import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig, unknownSettings } from './config.ts';
import { StartError } from './lib/start-error.ts';

function mistakesOf(env: Record<string, string>): string[] {
  try {
    readConfig(env, false);
  } catch (error) {
    if (error instanceof StartError) return error.lines;
    throw error;
  }
  return [];
}

test('an empty environment gives the documented defaults', () => {
  const config = readConfig({}, false);
  assert.equal(config.host, '127.0.0.1');
  assert.equal(config.port, 8080);
  assert.equal(config.routerPort, 8000);
  assert.equal(config.routerTlsPort, 8443);
  assert.deepEqual(config.regions, [{ name: 'local', engine: { kind: 'auto' } }]);
  assert.deepEqual(config.roles, ['api', 'catalogue', 'router', 'worker']);
  assert.equal(config.signatureHeader, 'X-Service-Signature');
  assert.ok(config.catalogueDir.endsWith('/data/catalogue'));
});

test('every mistake has one line of its own that begins with the name of the setting', () => {
  const lines = mistakesOf({
    SLUICE_PORT: '99999',
    SLUICE_API_URL: 'ftp://x',
    SLUICE_DATABASE_URL: 'mysql://x',
    SLUICE_REGIONS: 'a=auto,a=auto',
    SLUICE_ADMIN_TOKEN: 'short',
    SLUICE_SECRET_KEY: 'abc',
    SLUICE_ROLES: 'api,cook',
    SLUICE_LOG_LEVEL: 'loud',
    SLUICE_WEBHOOK_ALLOW_CIDRS: 'everyone',
    SLUICE_SIGNATURE_HEADER: 'a b',
    SLUICE_ROUTER_DOMAIN: '-x-',
  });
  assert.equal(lines.length, 11);
  for (const line of lines) assert.match(line, /^SLUICE_[A-Z_]+ \S/);
});

test('visitors are sent to https where certificates come from an authority that they trust, or as asked', () => {
  const redirect = (value: string, acme = '') =>
    readConfig({ SLUICE_HTTPS_REDIRECT: value, SLUICE_ACME_DIRECTORY: acme }, false).httpsRedirect;
  assert.equal(redirect('auto'), null);
  assert.deepEqual(redirect('auto', 'https://ca.example/directory'), { port: null });
  assert.deepEqual(redirect('on'), { port: null });
  assert.deepEqual(redirect('443'), { port: 443 });
  assert.equal(redirect('off', 'https://ca.example/directory'), null);
  for (const value of ['0', '65536', 'yes', '-1']) assert.equal(mistakesOf({ SLUICE_HTTPS_REDIRECT: value }).length, 1);
});

test('a bucket for logs comes with keys', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_ENDPOINT_URL: '' };
  assert.equal(readConfig(keys, false).logsS3, null);
  const { logsS3 } = readConfig({ SLUICE_LOGS_S3: 's3://logs/of/sluice/', AWS_REGION: 'eu-west-1', ...keys }, false);
  const place = { bucket: 'logs', prefix: 'of/sluice', region: 'eu-west-1', endpoint: undefined };
  assert.deepEqual(logsS3, { ...place, accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: undefined });
  assert.deepEqual(mistakesOf({ SLUICE_LOGS_S3: 's3://logs' }), [
    'SLUICE_LOGS_S3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
  ]);
  assert.match(mistakesOf({ SLUICE_LOGS_S3: 'logs/here', ...keys })[0]!, /must be of the form s3:/);
});

test('engines of regions are understood', () => {
  const { regions } = readConfig(
    { SLUICE_REGIONS: 'a=standin:,b=docker:,c=docker:tcp://10.0.0.1:2375,d=docker:/run/x.sock' },
    false,
  );
  assert.deepEqual(
    regions.map((region) => region.engine),
    [
      { kind: 'standin' },
      { kind: 'docker', address: null },
      { kind: 'docker', address: 'tcp://10.0.0.1:2375' },
      { kind: 'docker', address: '/run/x.sock' },
    ],
  );
});

test('a setting that does not exist is found', () => {
  assert.deepEqual(unknownSettings({ SLUICE_PROT: '1', SLUICE_PORT: '1', SLUICE_TOKEN: 'x', PATH: '/' }), [
    'SLUICE_PROT',
  ]);
});

test('the API of the cluster that it runs in has the address that pods are told, else a name', () => {
  const of = (KUBERNETES_SERVICE_HOST?: string, KUBERNETES_SERVICE_PORT?: string) =>
    readConfig({ KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT }, false).kubernetes.ownServer;
  assert.equal(of('10.96.0.1', '443'), 'https://10.96.0.1:443');
  assert.equal(of('fd00::1', '6443'), 'https://[fd00::1]:6443');
  assert.equal(of(), 'https://kubernetes.default.svc');
});

test('the kubeconfig is the one of the settings, else the first there is of $KUBECONFIG, else that in the home', () => {
  const of = (env: Record<string, string>) => readConfig(env, false).kubernetes.kubeconfig;
  assert.ok(of({}).endsWith('/.kube/config'));
  assert.equal(of({ KUBECONFIG: '/nowhere/a:/nowhere/b' }), '/nowhere/a');
  assert.equal(of({ KUBECONFIG: `/nowhere/a:${import.meta.filename}` }), import.meta.filename);
  assert.equal(of({ KUBECONFIG: '/nowhere/a', SLUICE_KUBECONFIG: '/etc/of-mine' }), '/etc/of-mine');
});
