import { connect } from 'node:net';
import { socketPathIn } from '../lib/private-files.ts';

const endWithinMs = 1000;

/** Ends the stand-in's instances with their process; does nothing where none runs. */
export function endStandin(dataDir: string): Promise<void> {
  return new Promise((resolve) => {
    const connection = connect(socketPathIn(dataDir, 'standin.sock'));
    connection.on('error', () => {}); // it does not run, or ended before it could answer
    connection.on('close', () => resolve());
    connection.setTimeout(endWithinMs, () => connection.destroy());
    connection.write('DELETE / HTTP/1.1\r\nHost: standin\r\n\r\n');
  });
}
