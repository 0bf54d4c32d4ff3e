// The entry of the control process, which the supervisor starts.
import './lib/source-stacks.ts';

try {
  const { run } = await import('./run.ts');
  await run(process.env, process.stdout.isTTY === true);
} catch (error) {
  process.send?.({ failed: String((error as Error).message).split('\n', 1)[0] });
  throw error;
}
