// sluice catalogue withdraw <id>: the document stops naming the stream, for good. Its files stay, so that a
// player with the old document can finish; with `purge` they are removed once the document no longer names them.
import { CatalogueError } from './fault.ts';
import { appendLedger, foldLedger, type LedgerLine, readLedger } from './ledger.ts';
import { readPublished, removeFromSite } from './publish.ts';
import { whileLocked } from './site-lock.ts';
import type { SitePaths } from './site-paths.ts';

interface WithdrawOptions {
  paths: SitePaths;
  id: string;
  purge: boolean;
  now: () => Date;
}

async function withdrawLocked({ paths, id, purge, now }: WithdrawOptions): Promise<void> {
  const ledger = await readLedger(paths.ledger);
  const record = foldLedger(ledger.lines).get(id);
  const published = await readPublished(paths);
  if (record === undefined || published === null) throw new CatalogueError(`stream ${id} was never published`);
  const at = now().toISOString();
  const lines: LedgerLine[] = [];
  if (!record.withdrawn) lines.push({ type: 'withdraw', at, id });
  if (purge && !record.purged) lines.push({ type: 'purge', at, id });
  // The ledger first: after a crash here the id is withdrawn already, and the same command finishes the rest.
  await appendLedger(paths.ledger, ledger.completeBytes, lines);
  const records = foldLedger([...ledger.lines, ...lines]);
  const streams = published.streams.filter((stream) => !records.get(stream.id)?.withdrawn);
  await removeFromSite(paths, records, published, { ...published, updated: at.slice(0, 10), streams });
}

export function withdrawStream(options: WithdrawOptions): Promise<void> {
  return whileLocked(options.paths, () => withdrawLocked(options));
}
