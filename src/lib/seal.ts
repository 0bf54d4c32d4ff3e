// Encryption at rest with AES-256-GCM. The context (what is sealed, and for which row) is authenticated, so that a sealed
// value copied to another row cannot be opened there.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

export interface Seal {
  seal(text: string, context: string): string;
  open(sealed: string, context: string): string;
  /** A keyed digest for values that only have to be recognised, such as cursors. */
  mac(text: string): Buffer;
}

export function createSeal(secretKey: Buffer): Seal {
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', secretKey, '', `sluice ${purpose}`, 32));
  const encryptionKey = derive('encryption');
  const macKey = derive('mac');
  return {
    seal(text, context) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', encryptionKey, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return `v1.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`;
    },
    open(sealed, context) {
      if (!sealed.startsWith('v1.')) throw new Error('unknown seal version');
      const bytes = Buffer.from(sealed.slice(3), 'base64url');
      const decipher = createDecipheriv('aes-256-gcm', encryptionKey, bytes.subarray(0, 12)).setAAD(
        Buffer.from(context),
      );
      decipher.setAuthTag(bytes.subarray(12, 28));
      return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
    },
    mac: (text) => createHmac('sha256', macKey).update(text).digest(),
  };
}
