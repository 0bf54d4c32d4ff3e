import { join } from 'node:path';
import { socketPathIn } from '../../lib/private-files.ts';

/** Where the agent listens for its workers. */
export const agentSocketPath = (dataDir: string): string => socketPathIn(join(dataDir, 'routing'), 'agent.sock');
