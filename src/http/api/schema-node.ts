// A schema as validation reads it. Requests use no other keywords for what holds other values; a test checks that.

export interface SchemaNode {
  type?: string;
  properties?: Record<string, SchemaNode>;
  patternProperties?: Record<string, SchemaNode>;
  additionalProperties?: boolean;
  required?: string[];
  minProperties?: number;
  maxProperties?: number;
  items?: SchemaNode;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  maxLength?: number;
  anyOf?: SchemaNode[];
}

export type Fields = Record<string, unknown>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The alternative that such a value is meant for: of two, one is always null. */
export function alternativeFor(schema: SchemaNode, value: unknown): SchemaNode {
  if (!schema.anyOf) return schema;
  const [first, second] = schema.anyOf as [SchemaNode, SchemaNode];
  return (first.type === 'null') === (value === null) ? first : second;
}

/** The schema of a field; undefined for one that the schema does not name. */
export function schemaOfField({ properties, patternProperties }: SchemaNode, name: string): SchemaNode | undefined {
  if (properties && Object.hasOwn(properties, name)) return properties[name];
  if (!patternProperties) return undefined;
  for (const pattern in patternProperties) if (matches(pattern, name)) return patternProperties[pattern];
  return undefined;
}

const patterns = new Map<string, RegExp>();

function matches(pattern: string, text: string): boolean {
  let expression = patterns.get(pattern);
  if (!expression) {
    expression = new RegExp(pattern, 'u');
    patterns.set(pattern, expression);
  }
  return expression.test(text);
}
