import { run as runService } from '../run.ts';

/** Returns once the service listens; the process then lives until a signal stops it. */
export async function run(): Promise<number> {
  await runService(process.env, process.stdout.isTTY === true);
  return Number(process.exitCode ?? 0);
}
