import { Client } from './client.ts';
import { keptName } from './kept-plans.ts';

export interface NamedStatement {
  name: string;
  text: string;
  values: unknown[];
}

/** The server keeps the plan of a statement that has a name. */
export class PlanKeepingClient extends Client {
  // biome-ignore lint/suspicious/noExplicitAny: the driver has many signatures, Kysely uses one
  override query(...args: any[]): any {
    const [text, values] = args;
    const name = args.length === 2 && Array.isArray(values) ? this.nameOf(text) : undefined;
    return name === undefined ? super.query(...args) : this.runNamed({ name, text, values });
  }

  protected nameOf(text: string): string | undefined {
    return keptName(text);
  }

  protected runNamed(statement: NamedStatement): Promise<unknown> {
    return super.query(statement);
  }
}
