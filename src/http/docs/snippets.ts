// A request of docs/examples.json in the three forms that the reference shows, each complete: for a shell, for the typed
// client, and for Python without a package. test/docs/examples.test.ts sends all of them.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RouteDeclaration } from '../../contract/declare.ts';
import { installDir } from '../../lib/install.ts';

export interface ExampleRequest {
  /** Path parameters, in the order of the path. */
  params: Record<string, string>;
  query: Record<string, string | number>;
  body?: unknown;
}

/** A recorded request and what came back: JSON, text of a stream, or nothing. */
export interface Example extends ExampleRequest {
  response: unknown;
}

let recorded: Record<string, Example> | null = null;

export function exampleOf(route: RouteDeclaration): Example | null {
  const file = join(installDir, 'docs/examples.json');
  recorded ??= existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, Example>) : {};
  return recorded[route.name] ?? null;
}

export const isStream = (route: RouteDeclaration): boolean => route.path.endsWith('/stream');

function urlOf(route: RouteDeclaration, { params, query }: ExampleRequest, apiUrl: string): string {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name]!));
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return `${apiUrl}/v1${path}${search.size > 0 ? `?${search}` : ''}`;
}

const inShell = (text: string): string => (/^[\w:/.@%-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function curlOf(route: RouteDeclaration, request: ExampleRequest, apiUrl: string): string {
  const method = route.method === 'GET' ? '' : ` -X ${route.method}`;
  const lines = [`curl -s${isStream(route) ? 'N' : 'S'}${method} ${inShell(urlOf(route, request, apiUrl))}`];
  if (route.scope !== 'public') lines.push('-H "Authorization: Bearer $SLUICE_TOKEN"');
  if (request.body !== undefined) {
    lines.push("-H 'Content-Type: application/json'");
    lines.push(`-d ${inShell(JSON.stringify(request.body))}`);
  }
  return lines.join(' \\\n  ');
}

const camel = (text: string): string => text.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** `projects.create` and two arguments, as source. Literals of JSON are literals of TypeScript. */
export function typescriptOf(route: RouteDeclaration, request: ExampleRequest): string {
  const values = Object.values(request.params).map((value) => `'${value}'`);
  const last = request.body ?? (Object.keys(request.query).length > 0 ? request.query : undefined);
  const args = [...values, ...(last === undefined ? [] : [literal(last)])];
  const call = `sluice.${camel(route.name)}(${args.join(', ')})`;
  if (isStream(route)) return `for await (const entry of ${call}) {\n  console.log(entry);\n}`;
  if (isList(route)) return `const { data, page } = await ${call}.page();\nconsole.log(data, page);`;
  return route.status === 204 ? `await ${call};` : `console.log(await ${call});`;
}

const isList = (route: RouteDeclaration): boolean => 'cursor' in route.query.properties;

const literal = (value: unknown): string =>
  JSON.stringify(value, null, 2)
    .replaceAll(/^(\s*)"([A-Za-z_]\w*)":/gm, '$1$2:')
    .replaceAll(/"((?:[^"\\']|\\.)*)"/g, "'$1'");

export function pythonOf(route: RouteDeclaration, request: ExampleRequest, apiUrl: string): string {
  const headers = [
    ...(route.scope === 'public' ? [] : ['"Authorization": "Bearer " + os.environ["SLUICE_TOKEN"]']),
    ...(request.body === undefined ? [] : ['"Content-Type": "application/json"']),
  ];
  const imports = [
    ...(request.body === undefined ? [] : ['json']),
    ...(route.scope === 'public' ? [] : ['os']),
    'urllib.request',
  ];
  const args = [
    `"${urlOf(route, request, apiUrl)}"`,
    ...(route.method === 'GET' ? [] : [`method="${route.method}"`]),
    ...(headers.length > 0 ? [`headers={${headers.join(', ')}}`] : []),
    ...(request.body === undefined ? [] : [`data=json.dumps(${pythonLiteral(request.body)}).encode()`]),
  ];
  const read = isStream(route)
    ? '    for line in response:\n        print(line.decode(), end="")'
    : `    print(${route.status === 204 ? 'response.status' : 'response.read().decode()'})`;
  return [
    `import ${imports.join(', ')}`,
    '',
    `request = urllib.request.Request(\n    ${args.join(',\n    ')},\n)`,
    'with urllib.request.urlopen(request) as response:',
    read,
  ].join('\n');
}

function pythonLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${pythonLiteral(each)}`);
  return `{${entries.join(', ')}}`;
}
