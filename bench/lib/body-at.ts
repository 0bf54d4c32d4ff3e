// One request over a connection of its own.
import { request } from 'node:http';

/** null: no answer, or not 200. */
export function bodyAt(port: number, host: string): Promise<string | null> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path: '/small', headers: { host }, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        body += chunk;
      });
      response.on('end', () => resolve(response.statusCode === 200 ? body : null));
    });
    sent.on('error', () => resolve(null)).end();
  });
}
