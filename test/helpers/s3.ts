// An S3-compatible server on loopback.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';

const key = 'S3RVER';

export async function startS3(bucket: string) {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-s3-'));
  const buckets = [{ name: bucket }];
  const server = new S3rver({ address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets: buckets });
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  return {
    endpoint,
    /** What a program reads from its environment. */
    env: { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: key, AWS_ENDPOINT_URL: endpoint, AWS_REGION: 'us-east-1' },
    storeAt: (prefix = '') => ({
      bucket,
      prefix,
      region: 'us-east-1',
      endpoint,
      accessKeyId: key,
      secretAccessKey: key,
    }),
    async stop() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
