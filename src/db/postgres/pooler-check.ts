import { StartError } from '../../lib/start-error.ts';
import type { Client } from './client.ts';
import { connectOnce } from './connect-once.ts';
import { isPooled } from './url.ts';

/** What to do about it, by the setting that leads there. */
const advice = {
  SLUICE_DATABASE_URL:
    'add pgbouncer=true to it, and set SLUICE_DATABASE_DIRECT_URL to PostgreSQL itself, without which changes of other ' +
    'processes are noticed a second later.',
  SLUICE_DATABASE_DIRECT_URL: 'it has to lead to PostgreSQL itself.',
};

/**
 * Refuses a PgBouncer in transaction mode that the URL does not tell of. In that mode a connection has no session of its
 * own, so that notifications get lost and kept statements are not found again.
 */
export async function refuseUntoldPooler(setting: keyof typeof advice, url: string): Promise<void> {
  if (setting === 'SLUICE_DATABASE_URL' && isPooled(url)) return;
  const clients: Client[] = [];
  const sessionOf = async () => {
    const client = await connectOnce(url).catch((error) => {
      if (!/unsupported startup parameter/.test(error.message)) throw error;
      throw new StartError(`${setting} leads to a PgBouncer: ${advice[setting]}`);
    });
    clients.push(client);
    const { rows } = await client.query('select pg_backend_pid() as pid');
    return { pid: rows[0].pid as number, told: (client as unknown as { processID: number }).processID };
  };
  try {
    const one = await sessionOf();
    if (one.pid === one.told) return;
    // A pooler. Both connections are open, so in session mode they have a session each.
    const two = await sessionOf();
    if (one.pid === two.pid)
      throw new StartError(`${setting} leads to a PgBouncer in transaction mode: ${advice[setting]}`);
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}
