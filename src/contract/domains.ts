import { Type } from 'typebox';
import {
  Choice,
  declareCommand,
  declareCreate,
  declareDelete,
  declareGet,
  declareList,
  Id,
  List,
  Nullable,
  type Of,
  Shape,
  Text,
  Time,
  Words,
} from './declare.ts';
import { EnvironmentName, projectParams } from './projects.ts';

const domainStates = ['pending', 'issuing', 'active', 'failed'] as const;
export type DomainState = (typeof domainStates)[number];

export const domainProofs = ['certificate', 'txt_record', 'not_needed', 'earlier'] as const;
export type DomainProof = (typeof domainProofs)[number];

const Hostname = Type.String({
  maxLength: 253,
  pattern: '^[a-z0-9.-]+$',
  description: 'The name people visit, in ASCII.',
  examples: ['shop.example'],
});

export const Certificate = Shape(
  {
    issuer: Text(500, 'The authority that signed it.'),
    serial: Type.String({ maxLength: 64, pattern: '^[0-9a-f]+$', description: 'Hexadecimal.' }),
    not_before: Time('Valid from.'),
    not_after: Time('Valid until.'),
    renew_at: Time('When it will be renewed.'),
    fingerprint_sha256: Type.String({ maxLength: 64, pattern: '^[0-9a-f]{64}$', description: 'Of the certificate.' }),
  },
  { $id: 'Certificate' },
);
export type Certificate = Of<typeof Certificate>;

export const Domain = Shape(
  {
    id: Id('dom', 'The domain.'),
    hostname: Hostname,
    environment: EnvironmentName,
    url: Type.String({ format: 'uri', maxLength: 500, description: 'The address of the domain.' }),
    state: Choice(
      domainStates,
      '`pending`: no certificate yet. `active`: it serves one, or needs none because the local CA does not sign its name. ' +
        '`failed`: the last attempt to get a first one failed and will be repeated.',
    ),
    proof: Nullable(
      Choice(
        domainProofs,
        'How it is known that the account may use the hostname; null: not yet, and it is not routed. `certificate`: an ' +
          'ACME authority gave one. `txt_record`: `txt_record` was found. `not_needed`: nobody can own the name. ' +
          '`earlier`: it was in use before proofs were asked for.',
      ),
    ),
    txt_record: Shape({
      name: Type.String({ maxLength: 261, pattern: '^_sluice[a-z0-9.-]+$', description: 'The name of the record.' }),
      value: Id('acc', 'Its value: the account.'),
      found: Nullable(
        List(
          Text(255, 'The value of a record.'),
          10,
          'What DNS had under this name instead at the last attempt; empty: nothing. null: not looked up yet, no answer ' +
            'from DNS, or no need for the record any more.',
        ),
      ),
    }),
    certificate: Nullable(Certificate),
    last_error: Nullable(Text(2000, 'The most recent error.')),
    next_attempt_at: Nullable(Time('When the next attempt to get a certificate is made, if the last one failed.')),
    created_at: Time('When it was added.'),
  },
  { $id: 'Domain' },
);
export type Domain = Of<typeof Domain>;

const CreateDomain = Shape(
  {
    hostname: Type.String({
      minLength: 1,
      maxLength: 253,
      pattern: '^\\S+$',
      description: 'The name people visit; letters of any language. No wildcard, no port.',
      examples: ['shop.example'],
    }),
    environment: EnvironmentName,
  },
  { $id: 'CreateDomain' },
);

const params = Shape({ ...projectParams.properties, dom: Id('dom', 'The domain.') });

export const listDomains = declareList({
  name: 'domains.list',
  path: '/projects/{id}/domains',
  tag: 'domains',
  summary: 'List domains of a project',
  scope: 'domains:read',
  params: projectParams,
  filters: { environment: Type.Optional(EnvironmentName), search: Type.Optional(Words) },
  item: Domain,
  errors: ['project_not_found'],
});

export const createDomain = declareCreate({
  name: 'domains.create',
  path: '/projects/{id}/domains',
  tag: 'domains',
  summary: 'Add a domain and request its certificate at once',
  scope: 'domains:write',
  params: projectParams,
  body: CreateDomain,
  response: Domain,
  versioned: true,
  errors: ['project_not_found', 'environment_unknown', 'domain_taken', 'quota_exceeded'],
});

export const getDomain = declareGet({
  name: 'domains.get',
  path: '/projects/{id}/domains/{dom}',
  tag: 'domains',
  summary: 'Get a domain',
  scope: 'domains:read',
  params,
  response: Domain,
  versioned: true,
  errors: ['project_not_found', 'domain_not_found'],
});

export const deleteDomain = declareDelete({
  name: 'domains.delete',
  path: '/projects/{id}/domains/{dom}',
  tag: 'domains',
  summary: 'Remove a domain and its certificate',
  scope: 'domains:write',
  params,
  errors: ['project_not_found', 'domain_not_found'],
});

export const verifyDomain = declareCommand({
  name: 'domains.verify',
  path: '/projects/{id}/domains/{dom}/verify',
  tag: 'domains',
  summary: 'Check the TXT record and DNS, and request the certificate at once',
  scope: 'domains:write',
  params,
  response: Domain,
  versioned: true,
  errors: ['project_not_found', 'domain_not_found', 'domain_not_pointed'],
});

export const renewDomain = declareCommand({
  name: 'domains.renew',
  path: '/projects/{id}/domains/{dom}/renew',
  tag: 'domains',
  summary: 'Renew the certificate now; the old one stays in use until then',
  scope: 'domains:write',
  params,
  status: 202,
  response: Domain,
  versioned: true,
  errors: ['project_not_found', 'domain_not_found'],
});
