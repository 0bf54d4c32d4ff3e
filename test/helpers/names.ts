import assert from 'node:assert/strict';
import type { Domain } from '../../src/contract/domains.ts';
import { call } from './app.ts';
import { until } from './wait.ts';

export const isActive = ({ state }: Domain) => state === 'active';

/** The domains of one project, as a client sees them. */
export class Names {
  readonly url: string;
  readonly project: string;

  constructor(url: string, project: string) {
    this.url = url;
    this.project = project;
  }

  api(method: string, rest: string, body?: object) {
    return call(this.url, method, `/v1/projects/${this.project}/domains${rest}`, { body });
  }

  async add(hostname: string): Promise<Domain> {
    const { status, body } = await this.api('POST', '', { hostname, environment: 'production' });
    assert.equal(status, 201, JSON.stringify(body));
    return body;
  }

  becomes(id: string, wanted: (domain: Domain) => boolean, timeoutMs?: number): Promise<Domain> {
    let last: Domain | undefined;
    return until(
      'the domain to change',
      async () => {
        last = (await this.api('GET', `/${id}`)).body as Domain;
        return wanted(last) ? last : undefined;
      },
      timeoutMs,
    ).catch((error) => assert.fail(`${error.message}: ${JSON.stringify(last)}`));
  }

  async active(hostname: string): Promise<Domain> {
    return this.becomes((await this.add(hostname)).id, isActive);
  }

  /** Of renewed certificates. */
  events() {
    return call(this.url, 'GET', '/v1/events?type=domain.certificate_renewed&limit=100');
  }

  async renewals(hostname: string): Promise<Domain[]> {
    const { body } = await this.events();
    return body.data
      .map((event: { data: Domain }) => event.data)
      .filter((domain: Domain) => domain.hostname === hostname);
  }
}
