import { Client, clientOptions } from './client.ts';

/** One connection to the first of the addresses that takes writes. The caller ends it. */
export async function connectOnce(url: string): Promise<Client> {
  const options = clientOptions({ url });
  for (let attempts = 1; ; attempts++) {
    const client = new Client(options);
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (attempts >= options.servers.count) throw error;
    }
  }
}
