// What the engine of a region is, remembered from one start to the next and between processes.
import type { Db } from '../db/database.ts';

const rowName = (region: string): string => `engine.${region}`;

/** null: the region has had none. */
export async function findRememberedEngine(db: Db, region: string): Promise<string | null> {
  const row = await db.selectFrom('meta').select('value').where('name', '=', rowName(region)).executeTakeFirst();
  return row?.value ?? null;
}

export async function rememberEngine(db: Db, region: string, engine: string): Promise<void> {
  await db
    .insertInto('meta')
    .values({ name: rowName(region), value: engine })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: engine }))
    .execute();
}

/** Gives what is remembered then: of several processes that start at once, the first one decides for all. */
export async function rememberFirstEngine(db: Db, region: string, engine: string): Promise<string> {
  await db
    .insertInto('meta')
    .values({ name: rowName(region), value: engine })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  return (await findRememberedEngine(db, region)) ?? engine;
}

export async function countInstancesIn(db: Db, region: string): Promise<number> {
  const row = await db
    .selectFrom('instance')
    .select((e) => e.fn.countAll().as('count'))
    .where('region', '=', region)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}
