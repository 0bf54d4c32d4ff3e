import type { Migration } from '../dialect.ts';

/** The ports that instances are given. A row outlives its instance, so that nobody else gets the port at once. */
export const instancePorts: Migration = {
  name: 'instance-ports',
  async up(db, { text, int }) {
    await db.schema
      .createTable('instance_port')
      .addColumn('host', text, (c) => c.notNull())
      .addColumn('port', int, (c) => c.notNull())
      .addColumn('instance_id', text, (c) => c.notNull())
      .addColumn('freed_at', int)
      .addColumn('freed_version', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('instance_port_pk', ['host', 'port'])
      .execute();
  },
};
