// Where environments and domains answer. The ports are known once the router listens; until then they are those of the
// settings.
import type { Config } from '../config.ts';

interface RouterPorts {
  http: number;
  /** null: there is no listener for TLS. */
  tls: number | null;
}

export interface Addresses {
  /** null: the router does not run in this process. */
  router: RouterPorts | null;
  /** The address of the environment with this host label. */
  environmentUrl(host: string): string;
  domainUrl(hostname: string): string;
}

export function createAddresses(config: Config): Addresses {
  const addresses: Addresses = {
    router: null,
    environmentUrl(host) {
      const port = addresses.router?.http ?? config.routerPort;
      return `http://${host}.${config.routerDomain}${port === 80 ? '' : `:${port}`}`;
    },
    domainUrl(hostname) {
      const port = config.httpsRedirect?.port ?? addresses.router?.tls ?? config.routerTlsPort;
      return `https://${hostname}${port === 443 ? '' : `:${port}`}`;
    },
  };
  return addresses;
}
