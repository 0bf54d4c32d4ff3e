// Where objects are kept, and how that is said: in settings, on the command line and in the environment.

export interface S3Address {
  bucket: string;
  /** Without slashes around it; empty: the whole bucket. */
  prefix: string;
}

/** `s3://bucket/prefix`; null: it is none. */
export function parseS3Address(text: string): S3Address | null {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text) ?? [];
  return bucket === undefined ? null : { bucket, prefix: prefix.replace(/^\/+|\/+$/g, '') };
}

/** With what other S3 tools read from the environment too; null: there are no credentials in it. */
export function storeAt(address: S3Address, env: Record<string, string | undefined>): S3Store | null {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_ENDPOINT_URL, AWS_REGION } = env;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) return null;
  return {
    ...address,
    region: AWS_REGION || 'us-east-1',
    endpoint: AWS_ENDPOINT_URL || undefined,
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN,
  };
}

export interface S3Store extends S3Address {
  region: string;
  endpoint?: string | undefined;
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}
