// Domains and their certificates: who may add which name, who signs, and what is shown in a handshake.
import { readFileSync } from 'node:fs';
import type { Config } from '../config.ts';
import { createAcme } from '../domains/acme.ts';
import { databaseCertificates } from '../domains/certificate-source.ts';
import type { Resolve, ResolveTxt } from '../domains/dns-checks.ts';
import { domainRoutes } from '../domains/domain-routes.ts';
import { hostOf } from '../domains/hostname.ts';
import { Issuer } from '../domains/issuer.ts';
import { createLocalCa, ownHosts } from '../domains/local-ca.ts';
import type { ServedRoute } from '../http/api/served-route.ts';
import { StartError } from '../lib/start-error.ts';
import type { CertificateSource } from '../traffic/data-plane.ts';
import { version } from '../version.ts';
import type { Addresses } from './addresses.ts';
import type { Common } from './common.ts';

export interface Domains {
  routes: ServedRoute[];
  /** What routers show in handshakes and answer to challenges. */
  certificates: CertificateSource;
  /** The root of the local CA; null: an ACME directory signs. */
  caPem: (() => Promise<string>) | null;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** How names become addresses, and what TXT records they have. */
interface DomainDns {
  resolve: Resolve;
  resolveTxt: ResolveTxt;
}

export function createDomains(common: Common, config: Config, addresses: Addresses, dns: DomainDns): Domains {
  const { db, clock } = common;
  const { acmeDirectory, routerDomain, localDomains } = config;
  const { resolve, resolveTxt } = dns;
  const rules = { local: acmeDirectory === null, localDomains };
  const local = rules.local ? createLocalCa(common, rules) : null;
  const authority = local ?? createAcme({ ...common, ...acmeSettings(config), userAgent: `Sluice/${version}` });
  const otherwise = local ? ownHosts({ db, clock, ca: local, routerDomain }) : async () => null;
  const urlOf = addresses.domainUrl;
  const issuer = new Issuer({ ...common, authority, resolveTxt, random: Math.random, urlOf });
  const routes = domainRoutes({
    ...common,
    reserved: { routerDomain, hosts: [...hostOf(config.apiUrl), ...hostOf(config.baseUrl)] },
    rules,
    resolve: local ? null : resolve,
    resolveTxt,
    urlOf,
  });
  return {
    routes,
    certificates: databaseCertificates({ ...common, otherwise }),
    caPem: local && (() => local.rootPem()),
    async start() {
      if (config.roles.includes('worker')) await issuer.start();
    },
    stop: () => issuer.stop(),
  };
}

function acmeSettings({ acmeDirectory, acmeEmail, acmeCaFile }: Config) {
  return { directory: acmeDirectory!, email: acmeEmail, ca: acmeCaFile === null ? null : readCa(acmeCaFile) };
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new StartError(`SLUICE_ACME_CA_FILE cannot be read: ${(error as Error).message}`);
  }
}
