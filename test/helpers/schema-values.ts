// Values that fit a schema of the OpenAPI document.
import fc from 'fast-check';

export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  format?: string;
}

const textOf = (schema: Schema): fc.Arbitrary<string> => {
  if (schema.format === 'date-time') return fc.constantFrom('2999-01-01T00:00:00.000Z', '2999-12-31T23:59:59+01:00');
  if (schema.pattern !== undefined && !['^', '\\S'].includes(schema.pattern)) {
    return fc.stringMatching(new RegExp(schema.pattern), { maxLength: schema.maxLength });
  }
  const maxLength = Math.min(schema.maxLength ?? 30, 30);
  return fc.string({ unit: 'grapheme', maxLength: maxLength - 1 }).map((text) => `a${text}`);
};

function multiplesOf(step: number, { minimum = 0, maximum = 1 }: Schema): fc.Arbitrary<number> {
  const perUnit = Math.round(1 / step);
  return fc
    .integer({ min: Math.ceil(minimum * perUnit), max: Math.floor(maximum * perUnit) })
    .map((steps) => steps / perUnit);
}

/** Values that fit the schema. */
export function fitting(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(fitting));
  switch (schema.type) {
    case 'string':
      return textOf(schema);
    case 'integer':
      return fc.integer({ min: schema.minimum, max: schema.maximum });
    case 'number':
      return schema.multipleOf === undefined
        ? fc.double({ min: schema.minimum, max: schema.maximum, noNaN: true })
        : multiplesOf(schema.multipleOf, schema);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.uniqueArray(fitting(schema.items!), { minLength: schema.minItems ?? 0, maxLength: 3 });
    default:
      return fittingObject(schema);
  }
}

/** What a field must hold to name something that is there: of the right form alone, it never would. */
const wellKnown: Record<string, string> = {
  environment: 'production',
  region: 'local',
  image: 'registry.example/shop:1',
  hostname: 'shop.example',
};

function fittingObject({ properties = {}, patternProperties = {}, required = [] }: Schema): fc.Arbitrary<object> {
  const [pattern] = Object.entries(patternProperties);
  if (pattern) return fc.dictionary(fc.stringMatching(new RegExp(pattern[0])), fitting(pattern[1]), { maxKeys: 3 });
  const field = (name: string, schema: Schema) =>
    name in wellKnown ? fc.oneof(fc.constant(wellKnown[name]), fitting(schema)) : fitting(schema);
  const fields = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, field(name, schema)]));
  return fc.record(fields, { requiredKeys: required });
}
