import type { AuditEntry } from '../../../src/client/index.ts';
import { ShortIds } from '../components/display/id.tsx';
import { Ago } from '../components/display/time.tsx';
import { PageHead } from '../components/layout/page-head.tsx';
import { Empty, More, Shown } from '../components/layout/states.tsx';
import { Table } from '../components/layout/table.tsx';
import { useList } from '../use-read.ts';

export function AuditPage() {
  const entries = useList<AuditEntry>('audit', (client, page) => client.auditLog.list(page).page(), { project: '*' });
  return (
    <>
      <PageHead title="Audit log" />
      <Shown of={entries}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="No entries yet.">Every change made through the API is recorded here.</Empty>
          ) : (
            <Table
              label="Audit log"
              items={items}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Time', cell: ({ created_at }) => <Ago at={created_at} /> },
                { name: 'Action', cell: ({ action }) => <code>{action}</code> },
                { name: 'Resource', cell: ({ resource }) => <ShortIds text={resource} /> },
                { name: 'Token', cell: ({ token_id }) => <ShortIds text={token_id} /> },
                { name: 'IP address', cell: ({ address }) => address },
                { name: 'Request ID', cell: ({ request_id }) => <code>{request_id}</code> },
              ]}
            />
          )
        }
      </Shown>
      <More of={entries} />
    </>
  );
}
