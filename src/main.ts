// The entry of the service: the supervisor, which starts everything else.
import './lib/source-stacks.ts';
import { supervise } from './supervisor/supervise.ts';

process.exit(await supervise(process.env, process.stdout.isTTY === true));
