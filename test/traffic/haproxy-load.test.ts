// HAProxy under load while its shares and certificates change, and while it is reloaded by a Sluice that starts anew.
// `npm run soak -- haproxy` is the same with 100,000 requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CertificateSource, StoredCertificate } from '../../src/traffic/data-plane.ts';
import { startHaproxy } from '../helpers/haproxy.ts';
import { ask, host, named, route, share } from '../helpers/router.ts';
import { issue } from '../helpers/router-certificates.ts';
import { askTls, openSession } from '../helpers/router-tls.ts';

const wanted = Number(process.env.SLUICE_TEST_REQUESTS ?? 2000);
const sample = Math.min(2000, wanted / 3);

function currentCertificate() {
  let current: StoredCertificate;
  const source: CertificateSource = {
    find: async (name, known) => (name === host ? (known === current.id ? 'current' : current) : null),
    answerChallenge: async () => null,
  };
  const renew = async () => {
    const { certificate, key, serial } = await issue(host);
    current = { id: serial, chainPem: certificate, keyPem: key };
  };
  return { source, renew };
}

const percents = [10, 30, 55, 90, 20];

test(`${wanted} requests over reloads, share changes and certificate swaps: none fails`, async () => {
  const { source, renew } = currentCertificate();
  await renew();
  // Another setting each time, so that HAProxy has to be reloaded.
  const options = { certificates: source, trustedProxies: ['10.0.0.1'] };
  let router = await startHaproxy(options);
  const [stable, canary] = [await named('stable'), await named('canary')];
  const serve = (percent: number) =>
    router.change([route([share(1, 100 - percent, stable), share(2, percent, canary)])]);
  await serve(10);
  const { port, tls } = router;
  const failed: string[] = [];
  const did = { requests: 0, sentAgain: 0, reloads: 0, shares: 0, certificates: 0 };
  let session = await openSession(tls);
  /** A session that goes away refuses a stream that it has not begun, and a client sends that again (RFC 9113, 8.7). */
  const overHttp2 = async (): Promise<{ status: number }> => {
    if (session.session.closed || session.session.destroyed) session = await openSession(tls);
    return session.ask().catch((error) => {
      if (!error.message.includes('NGHTTP2_REFUSED_STREAM')) throw error;
      did.sentAgain++;
      return overHttp2();
    });
  };
  const visits = [() => ask(port), () => ask(port), () => ask(port), () => askTls(tls), overHttp2];
  const isOver = () => did.requests >= wanted && did.reloads >= 2;
  const client = async (visit: () => Promise<{ status: number }>, times = Number.POSITIVE_INFINITY) => {
    for (let time = 0; time < times && (times === 1 || !isOver()); time++) {
      did.requests++;
      const outcome = await visit().then(
        ({ status }) => status,
        (error) => `${error.code} ${error.message}`,
      );
      if (outcome !== 200) failed.push(String(outcome));
    }
  };
  const shareErrors: number[] = [];
  /** Of all visitors within some time, none of whom has a cookie. */
  const shareSeen = async () => {
    await visit20(); // those that came before the change have their answers
    stable.seen.length = 0;
    canary.seen.length = 0;
    while (stable.seen.length + canary.seen.length < sample) await visit20();
    return canary.seen.length / (stable.seen.length + canary.seen.length);
  };
  const visit20 = async () => {
    await Promise.all(Array.from({ length: 20 }, () => client(() => ask(port), 1)));
  };
  const disturb = async () => {
    for (let round = 0; !isOver(); round++) {
      const percent = percents[round % percents.length]!;
      await serve(percent);
      did.shares++;
      shareErrors.push(Math.abs((await shareSeen()) * 100 - percent));
      await renew();
      await router.certificateServed(host);
      did.certificates++;
      options.trustedProxies = [`10.0.0.${(round % 200) + 2}`];
      router = await router.restart();
      did.reloads++;
    }
  };
  await Promise.all([disturb(), ...visits.flatMap((visit) => [client(visit), client(visit)])]);
  assert.deepEqual(failed, []);
  const worst = Math.max(...shareErrors);
  assert.ok(worst < 1, `${worst} points`);
  console.log(`${JSON.stringify(did)}: none failed; the canary share was off by ${worst.toFixed(2)} points at most`);
});
