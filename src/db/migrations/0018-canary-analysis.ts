import type { Migration } from '../dialect.ts';

/** What the analysis of a canary needs to know of requests, when it was last measured, and which instance it replaced. */
export const canaryAnalysis: Migration = {
  name: 'canary-analysis',
  async up(db, { int }) {
    await db.schema.alterTable('traffic').addColumn('detail', 'text').execute();
    await db.schema.alterTable('deployment').addColumn('measured_at', int).execute();
    await db.schema.alterTable('deployment').addColumn('replaced_instance', 'text').execute();
  },
};
