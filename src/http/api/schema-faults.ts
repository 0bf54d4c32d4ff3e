// Every way in which a value differs from its schema, for people to read. TypeBox judges texts and numbers; what holds other
// values is walked here, once and in order, and no further than to the last fault that is told.
import { validatorOf } from './compiled.ts';
import { FaultList } from './fault-list.ts';
import { alternativeFor, type Fields, isFields, type SchemaNode, schemaOfField } from './schema-node.ts';

export function findSchemaFaults(schema: SchemaNode, value: unknown, root: string): FaultList {
  const faults = new FaultList(root);
  compareValue(schema, value, faults);
  return faults;
}

function compareValue(schema: SchemaNode, value: unknown, faults: FaultList): void {
  const meant = alternativeFor(schema, value);
  const wrong = () => faults.add(`must be ${(schema.anyOf ?? [schema]).map(({ type }) => type).join(' or ')}`);
  if (meant.type === 'object') {
    if (isFields(value)) compareFields(meant, value, faults);
    else wrong();
  } else if (meant.type === 'array') {
    if (Array.isArray(value)) compareItems(meant, value, faults);
    else wrong();
  } else if (typeof value === 'object' && value !== null) {
    wrong();
  } else {
    compareLeaf(meant, value, faults);
  }
}

function compareFields(schema: SchemaNode, fields: Fields, faults: FaultList): void {
  const names = Object.keys(fields);
  const { properties = {}, required = [], minProperties = 0, additionalProperties } = schema;
  for (const name of names) {
    if (additionalProperties === false && !schemaOfField(schema, name)) faults.add('is not a known field', name);
    if (faults.isFull) return;
  }
  for (const name of required) if (!Object.hasOwn(fields, name)) faults.add('is required', name);
  if (names.length < minProperties) faults.add(`must not have fewer than ${minProperties} properties`);
  for (const name of names) {
    const schemaOfValue = schemaOfField(schema, name);
    if (!schemaOfValue || (fields[name] === undefined && Object.hasOwn(properties, name))) continue;
    faults.enter(name);
    compareValue(schemaOfValue, fields[name], faults);
    faults.leave();
    if (faults.isFull) return;
  }
}

function compareItems({ items, minItems = 0, uniqueItems }: SchemaNode, list: unknown[], faults: FaultList): void {
  if (list.length < minItems) faults.add(`must not have fewer than ${minItems} items`);
  if (uniqueItems && new Set(list).size < list.length) faults.add('must not have duplicate items');
  for (const [index, item] of list.entries()) {
    faults.enter(index);
    compareValue(items!, item, faults);
    faults.leave();
    if (faults.isFull) return;
  }
}

function compareLeaf(schema: SchemaNode, value: unknown, faults: FaultList): void {
  const { maxLength = Number.POSITIVE_INFINITY } = schema;
  // No character takes more than two units. Neither a pattern nor a format is tried on text that is too long anyway.
  if (typeof value === 'string' && value.length > 2 * maxLength) {
    faults.add(`must not have more than ${maxLength} characters`);
    return;
  }
  for (const { keyword, message, params } of validatorOf(schema).Errors(value)) {
    const { allowedValues } = params as { allowedValues?: string[] };
    faults.add(keyword === 'enum' && allowedValues ? `must be one of ${allowedValues.join(', ')}` : message);
  }
}
