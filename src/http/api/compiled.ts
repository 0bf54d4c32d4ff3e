// Compiled schemas. Each is compiled on first use, to keep the start fast.
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

const compiled = new WeakMap<object, Validator>();

export function validatorOf(schema: object): Validator {
  let validator = compiled.get(schema);
  if (!validator) {
    validator = Compile(schema as TSchema) as unknown as Validator;
    compiled.set(schema, validator);
  }
  return validator;
}

export const conforms = (schema: object, value: unknown): boolean => validatorOf(schema).Check(value);
