import type { Migration } from '../dialect.ts';

/** What instances printed: in segments of compressed lines, and how far each instance's log has been collected. */
export const logs: Migration = {
  name: 'logs',
  async up(db, { text, int, bytes }) {
    await db.schema
      .createTable('log_stream')
      .addColumn('instance_id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('environment', text, (c) => c.notNull())
      .addColumn('revision', int, (c) => c.notNull())
      .addColumn('position', text)
      .addColumn('latest', text, (c) => c.notNull())
      .addColumn('seq', int, (c) => c.notNull())
      .addColumn('version', int, (c) => c.notNull())
      .addColumn('updated_at', int, (c) => c.notNull())
      .addForeignKeyConstraint(
        'log_stream_environment',
        ['project_id', 'environment'],
        'environment',
        ['project_id', 'name'],
        (c) => c.onDelete('cascade'),
      )
      .execute();
    await db.schema
      .createIndex('log_stream_by_environment')
      .on('log_stream')
      .columns(['project_id', 'environment'])
      .execute();
    await db.schema
      .createTable('log_segment')
      .addColumn('instance_id', text, (c) => c.notNull().references('log_stream.instance_id').onDelete('cascade'))
      .addColumn('seq', int, (c) => c.notNull())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('environment', text, (c) => c.notNull())
      .addColumn('revision', int, (c) => c.notNull())
      .addColumn('from_at', int, (c) => c.notNull())
      .addColumn('to_at', int, (c) => c.notNull())
      .addColumn('lines', int, (c) => c.notNull())
      .addColumn('raw_bytes', int, (c) => c.notNull())
      .addColumn('bytes', int, (c) => c.notNull())
      .addColumn('place', text, (c) => c.notNull())
      .addColumn('blob', text, (c) => c.notNull())
      .addColumn('updated_at', int, (c) => c.notNull())
      .addPrimaryKeyConstraint('log_segment_pk', ['instance_id', 'seq'])
      .execute();
    await db.schema
      .createIndex('log_segment_by_time')
      .on('log_segment')
      .columns(['project_id', 'environment', 'to_at'])
      .execute();
    await db.schema
      .createIndex('log_segment_by_change')
      .on('log_segment')
      .columns(['project_id', 'environment', 'updated_at'])
      .execute();
    await db.schema.createIndex('log_segment_by_blob').on('log_segment').column('blob').execute();
    await db.schema
      .createTable('log_blob')
      .addColumn('id', text, (c) => c.primaryKey())
      .addColumn('project_id', text, (c) => c.notNull())
      .addColumn('environment', text, (c) => c.notNull())
      .addColumn('data', bytes, (c) => c.notNull())
      .addColumn('created_at', int, (c) => c.notNull())
      .execute();
    await db.schema
      .createIndex('log_blob_by_environment')
      .on('log_blob')
      .columns(['project_id', 'environment'])
      .execute();
  },
};
