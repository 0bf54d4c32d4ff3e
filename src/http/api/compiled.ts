// Compiled schemas. Each is compiled, and the compiler is loaded, on first use, to keep the start fast.
import { createRequire } from 'node:module';
import type { TSchema } from 'typebox';
import type * as TypeboxCompile from 'typebox/compile';

const require = createRequire(import.meta.url);
let compiler: typeof TypeboxCompile | undefined;

/** Loads the compiler if it is not loaded yet. */
export function loadCompiler(): typeof TypeboxCompile {
  compiler ??= require('typebox/compile') as typeof TypeboxCompile;
  return compiler;
}

const compiled = new WeakMap<object, TypeboxCompile.Validator>();

export function validatorOf(schema: object): TypeboxCompile.Validator {
  let validator = compiled.get(schema);
  if (!validator) {
    validator = loadCompiler().Compile(schema as TSchema) as unknown as TypeboxCompile.Validator;
    compiled.set(schema, validator);
  }
  return validator;
}

export const conforms = (schema: object, value: unknown): boolean => validatorOf(schema).Check(value);
