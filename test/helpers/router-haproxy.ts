// HAProxy behind the interface of the router tests. To start one takes longer than most of these tests, so tests with the
// same settings share one within a file; each has a project of its own there, and leaves nothing behind.
import { after } from 'node:test';
import type { CertificateSource, EnvironmentRoutes } from '../../src/traffic/data-plane.ts';
import type { ProxyLimits } from '../../src/traffic/proxy/limits.ts';
import { startHaproxy, type TestHaproxy } from './haproxy.ts';
import type { TestRouter, TestRouterTls } from './router-plane.ts';

interface SharedHaproxy extends TestHaproxy {
  /** The certificates of the test that has it now. */
  current: { certificates: CertificateSource | null };
}

const idle = new Map<string, SharedHaproxy[]>();
let tests = 0;

async function openShared(limits: Partial<ProxyLimits>, tls: TestRouterTls | null): Promise<SharedHaproxy> {
  const current: SharedHaproxy['current'] = { certificates: null };
  const certificates: CertificateSource = {
    find: async (name, known) => current.certificates?.find(name, known) ?? null,
    answerChallenge: async (name, token) => current.certificates?.answerChallenge(name, token) ?? null,
  };
  const redirect = tls?.redirect ?? null;
  const haproxy = await startHaproxy({ limits, redirect, certificates: tls && certificates });
  return { ...haproxy, current };
}

export async function startHaproxyRouter(
  limits: Partial<ProxyLimits>,
  tls: TestRouterTls | null,
): Promise<Omit<TestRouter, 'serve'>> {
  const key = JSON.stringify([limits, tls !== null, tls?.redirect ?? null]);
  const free = idle.get(key) ?? [];
  idle.set(key, free);
  const haproxy = free.pop() ?? (await openShared(limits, tls));
  const project = `prj_${++tests}`;
  const { current } = haproxy;
  const certificates = tls?.certificates ?? null;
  current.certificates = certificates;
  if (certificates) certificates.onChanged = (name) => haproxy.certificateServed(name);
  let table: EnvironmentRoutes[] = [];
  let stopped = false;
  const apply = async (...environments: EnvironmentRoutes[]) => {
    const gone = table.filter((one) => !environments.some((other) => other.environment === one.environment));
    table = environments.map((routes) => ({ ...routes, project }));
    await haproxy.change([...gone.map((routes) => ({ ...routes, hosts: [], shares: [] })), ...table]);
  };
  after(async () => {
    if (stopped) return;
    current.certificates = null;
    await apply();
    haproxy.plane.expireCertificates(null);
    free.push(haproxy);
  });
  return {
    apply,
    takeMeasurements: () => haproxy.takeMeasurements().filter((one) => one.project === project),
    logged: () => [],
    port: () => haproxy.port,
    tlsPort: () => tls && haproxy.tls,
    counted: (revision) => haproxy.counted(revision, project),
    stop: (drainMs) => {
      stopped = true;
      return haproxy.stop(drainMs);
    },
  };
}
