// The first check of what a client sent: whether a list or an object is larger than its schema allows, or nested too deep,
// and whether all text is text. Nothing inside what is too large is read, so the work does not depend on how much too large
// it is, and later checks work on a value of a limited size.
import { FaultList } from './fault-list.ts';
import { alternativeFor, isFields, type SchemaNode, schemaOfField } from './schema-node.ts';

const maxDepth = 32;
/** So many unknown fields are left for the complete list of faults; with more, that list would name nothing else. */
const maxUnknown = 20;

export function findExcess(schema: SchemaNode, value: unknown, root: string): FaultList {
  const faults = new FaultList(root);
  checkSize(schema, value, faults, 0);
  return faults;
}

/** `schema` is undefined below fields that the schema does not name but allows. */
function checkSize(schema: SchemaNode | undefined, value: unknown, faults: FaultList, depth: number): void {
  if (typeof value === 'string') checkText(value, faults);
  if (typeof value !== 'object' || value === null) return;
  if (depth >= maxDepth) {
    faults.add(`is nested deeper than ${maxDepth} levels`);
    return;
  }
  const meant = schema && alternativeFor(schema, value);
  if (isFields(value)) {
    if (!meant || meant.type === 'object') checkFieldCount(meant, value, faults, depth);
  } else if (!meant || meant.type === 'array') {
    checkItemCount(meant, value as unknown[], faults, depth);
  }
}

function checkText(text: string, faults: FaultList): void {
  if (text.includes('\0')) faults.add('must not contain NUL');
  else if (!text.isWellFormed()) faults.add('must be well-formed Unicode');
}

function checkItemCount(schema: SchemaNode | undefined, items: unknown[], faults: FaultList, depth: number): void {
  const most = schema?.maxItems ?? Number.POSITIVE_INFINITY;
  if (items.length > most) {
    faults.add(`must not have more than ${most} items`);
    return;
  }
  for (const [index, item] of items.entries()) {
    faults.enter(index);
    checkSize(schema?.items, item, faults, depth + 1);
    faults.leave();
    if (faults.isFull) return;
  }
}

function checkFieldCount(schema: SchemaNode | undefined, fields: object, faults: FaultList, depth: number): void {
  const names = Object.keys(fields);
  const most = schema?.maxProperties ?? Number.POSITIVE_INFINITY;
  if (names.length > most) {
    faults.add(`must not have more than ${most} properties`);
    return;
  }
  const isClosed = schema?.additionalProperties === false;
  const known = Object.keys(schema?.properties ?? {}).length;
  if (isClosed && !schema.patternProperties && names.length > known + maxUnknown) {
    addUnknown(schema, names, faults);
    return;
  }
  for (const name of names) {
    if (!name.isWellFormed() || name.includes('\0')) faults.add('has a field name with invalid characters');
    const schemaOfValue = schema && schemaOfField(schema, name);
    if (isClosed && !schemaOfValue) continue;
    faults.enter(name);
    checkSize(schemaOfValue, (fields as Record<string, unknown>)[name], faults, depth + 1);
    faults.leave();
    if (faults.isFull) return;
  }
}

function addUnknown(schema: SchemaNode, names: string[], faults: FaultList): void {
  for (const name of names) {
    if (!schemaOfField(schema, name)) faults.add('is not a known field', name);
    if (faults.isFull) return;
  }
}
