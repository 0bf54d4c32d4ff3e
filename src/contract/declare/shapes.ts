// The building blocks of all resources. Each string has a maximum length and a pattern or format; a linter checks the
// OpenAPI document for that.
import { type Static, type TSchema, Type } from 'typebox';
import { idPattern } from '../../lib/ids.ts';

export const Id = (prefix: string, description: string) =>
  Type.String({
    pattern: idPattern(prefix),
    maxLength: 40,
    description,
    examples: [`${prefix}_01k9xw3v5qfk2t8m7c4b6d9e0h`],
  });

/** Any printable text; NUL and broken Unicode are refused for every string of a request. */
export const Text = (maxLength: number, description: string, minLength = 0) =>
  Type.String({ minLength, maxLength, pattern: minLength > 0 ? '\\S' : '^', description });

export const Time = (description: string) =>
  Type.String({ format: 'date-time', maxLength: 35, description, examples: ['2026-11-15T08:30:00.000Z'] });

export const Int = (minimum: number, maximum: number, description: string, options: Record<string, unknown> = {}) =>
  Type.Integer({ minimum, maximum, format: maximum > 2 ** 31 - 1 ? 'int64' : 'int32', description, ...options });

export const Rate = (description: string) => Type.Number({ minimum: 0, maximum: 1, format: 'double', description });

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const Choice = <const T extends string>(values: readonly T[], description: string) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], description });

export const Shape = <T extends Record<string, TSchema>>(properties: T, options: Record<string, unknown> = {}) =>
  Type.Object(properties, { additionalProperties: false, ...options });

export const List = <T extends TSchema>(items: T, maxItems: number, description: string) =>
  Type.Array(items, { maxItems, description });

const Cursor = Type.String({
  maxLength: 200,
  pattern: '^[A-Za-z0-9_-]+$',
  description: '`page.next` of the previous page, unchanged.',
});

export const pageQuery = {
  limit: Type.Optional(Int(1, 100, 'How many items a page has.', { default: 20 })),
  cursor: Type.Optional(Cursor),
};

export const Page = <T extends TSchema>(items: T, maxItems = 100) =>
  Shape({
    data: List(items, maxItems, 'The items of the page, newest first.'),
    page: Shape({
      next: Nullable(Cursor),
      has_more: Type.Boolean({ description: 'True when more items follow.' }),
    }),
  });

export const ErrorBody = Shape(
  {
    error: Shape({
      code: Type.String({ maxLength: 64, pattern: '^[a-z_]+$', description: 'Machine-readable; see `docs`.' }),
      message: Text(2000, 'For people.'),
      status: Int(400, 599, 'Equals the HTTP status.'),
      request_id: Id('req', 'Equals `X-Request-Id`.'),
      docs: Type.String({ format: 'uri', maxLength: 500, description: 'What the code means and what to do.' }),
      details: Type.Optional(
        List(
          Shape({ path: Text(500, 'A field, a parameter or an id.'), message: Text(2000, 'What is wrong with it.') }),
          200,
          'Each cause of the error.',
        ),
      ),
    }),
  },
  { $id: 'Error' },
);

export type Of<T extends TSchema> = Static<T>;
