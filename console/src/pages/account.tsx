// What the account may have, and what it has.
import type { Account } from '../../../src/client/index.ts';
import { PageHead } from '../components/layout/page-head.tsx';
import { Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { bytes } from '../format.ts';
import { useRead } from '../use-read.ts';

type Resource = keyof Account['quotas'];

const names: Record<Resource, string> = {
  projects: 'Projects',
  environments: 'Environments',
  instances: 'Instances',
  memory_mb: 'Memory of instances',
  ports: 'Ports of instances',
  webhooks: 'Webhooks',
  domains: 'Domains',
  tokens: 'Tokens',
  variables_bytes: 'Variables',
  log_bytes: 'Logs',
  requests_per_minute: 'API requests a minute',
};

const amount = (resource: Resource, number: number): string => {
  if (resource === 'memory_mb') return bytes(number * 1024 * 1024);
  return resource.endsWith('_bytes') ? bytes(number) : number.toLocaleString('en');
};

export function AccountPage() {
  const account = useRead<Account>('account', (client) => client.account.get(), { project: '*', pollMs: () => 15_000 });
  return (
    <>
      <PageHead title="Account" />
      <Shown of={account}>
        {({ quotas, usage }) => (
          <Table
            label="Quotas"
            items={Object.keys(names) as Resource[]}
            keyOf={(resource) => resource}
            columns={[
              { name: 'Resource', cell: (resource) => <strong>{names[resource]}</strong> },
              { name: 'Used', cell: (resource) => amount(resource, usage[resource]) },
              {
                name: 'Quota',
                cell: (resource) => (quotas[resource] === null ? 'no limit' : amount(resource, quotas[resource])),
              },
              {
                name: 'Share',
                cell: (resource) => <Share of={names[resource]} used={usage[resource]} quota={quotas[resource]} />,
              },
            ]}
          />
        )}
      </Shown>
    </>
  );
}

function Share({ of, used, quota }: { of: string; used: number; quota: number | null }) {
  if (quota === null || quota === 0) return <>–</>;
  const percent = Math.round((100 * used) / quota);
  return (
    <>
      <meter aria-label={`${of} used`} max={quota} high={0.9 * quota} value={Math.min(used, quota)} /> {percent} %
    </>
  );
}
