// Validates requests against their declarations.
import type { TObject } from 'typebox';
import { ApiError } from '../../contract/errors.ts';
import { conforms } from './compiled.ts';
import { findExcess } from './excess.ts';
import type { FaultList } from './fault-list.ts';
import { hasTooManyValues, maxValues } from './json-values.ts';
import { findSchemaFaults } from './schema-faults.ts';
import type { SchemaNode } from './schema-node.ts';

/** Returns the value if it is valid; else throws 400 with the path of every fault, beginning with `root`. */
export function validate(schema: TObject, value: unknown, root: 'body' | 'query'): unknown {
  const excess = findExcess(schema as SchemaNode, value, root);
  if (excess.details.length > 0) throw invalid(root, excess);
  if (conforms(schema, value)) return value;
  throw invalid(root, findSchemaFaults(schema as SchemaNode, value, root));
}

function invalid(root: string, faults: FaultList): ApiError {
  if (faults.details.length === 0) faults.add('is not valid');
  const { path, message } = faults.details[0]!;
  return new ApiError('invalid_request', `The ${root} is not valid: ${path} ${message}.`, { details: faults.details });
}

/** Converts query parameters, which arrive as text, to numbers and booleans where the schema asks for them. */
export function coerceQuery(schema: TObject, query: Record<string, unknown>): Record<string, unknown> {
  // Unlike an assignment, fromEntries treats `__proto__` as an ordinary name.
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const type = (schema.properties[name] as { type?: string } | undefined)?.type;
      if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return [name, Number(value)];
      if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true'];
      return [name, value];
    }),
  );
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (hasTooManyValues(bytes)) {
    throw new ApiError('invalid_request', `The body has more than ${maxValues} values.`, {
      details: [{ path: 'body', message: `must not have more than ${maxValues} values` }],
    });
  }
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new ApiError('invalid_json', 'The body is not JSON in UTF-8.');
  }
}
