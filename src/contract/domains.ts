import { Type } from 'typebox';
import { EnvironmentName } from './projects.ts';
import { Choice, Id, Nullable, type Of, Shape, Text, Time } from './shapes.ts';

const Hostname = Type.String({
  maxLength: 253,
  pattern: '^[a-z0-9.-]+$',
  description: 'The name people visit.',
  examples: ['shop.example'],
});

export const Certificate = Shape(
  {
    issuer: Text(500, 'Who signed it.'),
    serial: Type.String({ maxLength: 64, pattern: '^[0-9a-f]+$', description: 'Hexadecimal.' }),
    not_before: Time('Valid from.'),
    not_after: Time('Valid until.'),
    renew_at: Time('When it will be renewed.'),
    fingerprint_sha256: Type.String({ maxLength: 64, pattern: '^[0-9a-f]{64}$', description: 'Of the certificate.' }),
  },
  { $id: 'Certificate' },
);

export const Domain = Shape(
  {
    id: Id('dom', 'The domain.'),
    hostname: Hostname,
    environment: EnvironmentName,
    state: Choice(['pending', 'issuing', 'active', 'failed'], 'Where it is.'),
    certificate: Nullable(Certificate),
    last_error: Nullable(Text(2000, 'What went wrong last.')),
    created_at: Time('When it was added.'),
  },
  { $id: 'Domain' },
);
export type Domain = Of<typeof Domain>;
