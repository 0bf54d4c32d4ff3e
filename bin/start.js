// What `npm start` runs.
import { runBundled } from './bundle.js';

await runBundled('supervisor');
