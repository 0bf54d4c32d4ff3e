// The site at /docs: guides, search, the reference, the error page that `error.docs` links to; and the page at / until there
// is a gallery. Plain HTML from docs/ and the declarations, no scripts.
import { routes } from '../contract/api.ts';
import { type RouteDeclaration, tagCatalogue } from '../contract/declare.ts';
import { errorCatalogue } from '../contract/errors.ts';
import { scopeCatalogue } from '../contract/scopes.ts';
import { excerpt, guide, guideGroups, mostHits, search } from './docs/guides.ts';
import { escapeHtml } from './docs/markdown.ts';
import { curlOf, exampleOf, pythonOf, typescriptOf } from './docs/snippets.ts';
import { errorsOf } from './openapi.ts';

/** Text with `code` in backticks. */
const inline = (text: string): string => escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>');

const style = `
:root{color-scheme:light dark;--line:light-dark(#d9dee3,#353c44);--soft:light-dark(#5b6670,#9aa5b1);--tint:light-dark(#f3f6f8,#1d2329);--accent:light-dark(#0b6e78,#5fc3cf)}
*{box-sizing:border-box}body{font:16px/1.6 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem 1.25rem 6rem;background:light-dark(#fff,#14181c);color:light-dark(#1a2026,#e3e8ec)}
a{color:var(--accent)}h1{font-size:1.6rem;line-height:1.3}h2{margin-top:3rem;border-bottom:1px solid var(--line)}h3{margin-bottom:.3rem;scroll-margin-top:1rem}
code{font:.88em ui-monospace,monospace;background:var(--tint);padding:.1em .3em;border-radius:4px;overflow-wrap:anywhere}
pre{background:var(--tint);padding:.8rem 1rem;border-radius:8px;overflow-x:auto}pre code{background:none;padding:0}
table{border-collapse:collapse;width:100%;font-size:.92rem}td,th{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}
.m{font:700 .8em ui-monospace,monospace;color:var(--accent);margin-right:.5em}.s{color:var(--soft)}section{margin:2rem 0}nav{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem}
.scroll{overflow-x:auto}nav{margin:1rem 0}form{display:flex;gap:.5rem;margin:.5rem 0 1rem}input{flex:1;min-width:0}input,button{font:inherit;padding:.45rem .7rem;border:1px solid var(--line);border-radius:8px;background:var(--tint);color:inherit}
summary{cursor:pointer;color:var(--accent);font-size:.92rem;padding:.2rem 0}details pre{margin:.3rem 0}blockquote{margin:0;padding:.1rem 1rem;border-left:3px solid var(--line);color:var(--soft)}mark{background:light-dark(#fdf0b5,#5a4a10);color:inherit}
:target{background:var(--tint);border-radius:8px;box-shadow:0 0 0 .6rem var(--tint)}`;

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escapeHtml(title)}</title><style>${style}</style></head><body><main>${body}</main></body></html>`;
}

/** A page of the site: with the way back and the search on top. */
const sitePage = (title: string, body: string, query = ''): string =>
  page(
    `${title} · Sluice`,
    `<header><nav><a href="/docs">Docs</a><a href="/docs/reference">Reference</a><a href="/docs/errors">Errors</a><a href="/docs/guides/settings">Settings</a><a href="/docs/guides/cli">Command line</a><a href="/console">Console</a></nav>
<form action="/docs/search" role="search"><input type="search" name="q" value="${escapeHtml(query)}" aria-label="Search the docs" placeholder="Search: an error code, a setting, a route, a command" maxlength="200"><button>Search</button></form></header>${body}`,
  );

export function docsPage(): string {
  const groups = guideGroups.map(({ title, names }) => {
    const links = names.flatMap((name) => {
      const found = guide(name);
      return found === null ? [] : [`<li><a href="/docs/guides/${name}">${escapeHtml(found.title)}</a></li>`];
    });
    return links.length === 0 ? '' : `<h2>${title}</h2><ul>${links.join('')}</ul>`;
  });
  return sitePage(
    'Docs',
    `<h1>Sluice</h1><p>The <a href="/docs/reference">reference</a> shows every route with a recorded request, the <a href="/docs/errors">errors</a> say what to do, and <a href="/v1/openapi.json">openapi.json</a> is for programs.</p>${groups.join('')}`,
  );
}

/** null: there is no such guide. */
export function guidePage(name: string): string | null {
  const found = guide(name);
  return found === null ? null : sitePage(found.title, found.html);
}

export function searchPage(query: string): string {
  const hits = search(query);
  const shown = hits.map(
    ({ title, page, href, text }) =>
      `<li><a href="${escapeHtml(href)}">${escapeHtml(title)}</a> <span class="s">${escapeHtml(page)}</span><br>${excerpt(text, query)}</li>`,
  );
  const count = hits.length === mostHits ? `The first ${mostHits} results` : `${hits.length} results`;
  const about = query.trim() === '' ? '' : `<p class="s">${count} for “${escapeHtml(query)}”</p>`;
  return sitePage('Search', `<h1>Search</h1>${about}<ol>${shown.join('')}</ol>`, query);
}

/** What is here, for the time in which there is no gallery to say it. */
export const welcomePage = (): string =>
  page(
    'Sluice',
    `<h1>Sluice</h1><p>Deployments with canary rollouts, and a catalogue of media streams.</p><ul>
<li><a href="/console">Console</a>: projects, deployments and what they do; sign in with a token.</li>
<li><a href="/docs">Docs</a>: guides, the API reference, its <a href="/docs/errors">errors</a> and <a href="/v1/openapi.json">OpenAPI document</a>.</li>
<li>The gallery of the catalogue appears here once streams are published.</li></ul>`,
  );

export function errorsPage(): string {
  const entries = Object.entries(errorCatalogue).map(
    ([code, { status, means, remedy }]) =>
      `<section id="${code}"><h3><span class="m">${status}</span><code>${code}</code></h3><p>${inline(means)}</p><p class="s">${inline(remedy)}</p></section>`,
  );
  return sitePage(
    'Errors',
    `<h1>Errors</h1><p>Every error has the same form: <code>{"error": {code, message, status, request_id, docs, details?}}</code>. <code>request_id</code> names the request in the log of the service.</p>${entries.join('')}`,
  );
}

export function referencePage(apiUrl: string, baseUrl: string): string {
  const tags = Object.entries(tagCatalogue).map(([tag, about]) => {
    const own = routes.filter((route) => route.tag === tag);
    return `<h2 id="${tag}">${tag}</h2><p>${escapeHtml(about)}</p>${own.map((route) => routeSection(route, apiUrl)).join('')}`;
  });
  const scopes = Object.entries(scopeCatalogue).map(
    ([scope, about]) => `<tr><td><code>${scope}</code></td><td>${escapeHtml(about)}</td></tr>`,
  );
  const links = [...Object.keys(tagCatalogue), 'scopes'].map((tag) => `<a href="#${tag}">${tag}</a>`);
  return sitePage(
    'Reference',
    `<h1>Sluice API</h1><nav>${links.join('')}<a href="/v1/openapi.json">openapi.json</a><a href="${escapeHtml(baseUrl)}/api/streams.json">the catalogue</a></nav>
<p>JSON in UTF-8; times in UTC; <code>Authorization: Bearer &lt;token&gt;</code>. 600 requests a minute per token. Lists take <code>limit</code> and <code>cursor</code>. Any POST takes <code>Idempotency-Key</code>; PATCH and DELETE take <code>If-Match</code>.</p>
<pre><code>curl ${escapeHtml(apiUrl)}/v1/projects -H "Authorization: Bearer $SLUICE_TOKEN"</code></pre>
${tags.join('')}<h2 id="scopes">scopes</h2><table>${scopes.join('')}</table>`,
  );
}

function routeSection(route: RouteDeclaration, apiUrl: string): string {
  const id = route.name.replaceAll('.', '-');
  const scope = route.scope === 'public' ? 'no token needed' : (route.scope ?? 'any valid token');
  const fields = [
    ...fieldRows('path', route.params),
    ...fieldRows('query', route.query),
    ...(route.body ? fieldRows('body', route.body) : []),
  ];
  const errors = errorsOf(route)
    .filter((code) => route.errors.includes(code))
    .map((code) => `<a href="/docs/errors#${code}">${code}</a>`);
  return `<section id="${id}"><h3><span class="m">${route.method}</span><code>/v1${escapeHtml(route.path)}</code></h3><p>${inline(route.summary)}. <span class="s">Scope: <code>${escapeHtml(scope)}</code>. Responds with ${route.status}.</span></p>
${fields.length > 0 ? `<div class="scroll"><table>${fields.join('')}</table></div>` : ''}${errors.length > 0 ? `<p class="s">Specific errors: ${errors.join(', ')}</p>` : ''}
${example(route, apiUrl)}</section>`;
}

type Described = { description?: string; type?: string; enum?: string[]; anyOf?: Described[] };

function fieldRows(location: string, schema: { properties: Record<string, unknown>; required?: unknown }): string[] {
  const required = new Set((schema.required as string[] | undefined) ?? []);
  return Object.entries(schema.properties).map(([name, property]) => {
    const { description = '', ...rest } = property as Described;
    const about = description || (rest.anyOf?.[0]?.description ?? '');
    const need = required.has(name) ? '' : ' <span class="s">optional</span>';
    return `<tr><td class="s">${location}</td><td><code>${name}</code>${need}</td><td>${typeOf(rest)}</td><td>${inline(about)}</td></tr>`;
  });
}

function typeOf(schema: Described): string {
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' or ');
  return schema.enum ? schema.enum.map((value) => `<code>${value}</code>`).join(' ') : (schema.type ?? '');
}

function example(route: RouteDeclaration, apiUrl: string): string {
  const recorded = exampleOf(route);
  if (recorded === null) return '';
  const forms: [name: string, text: string][] = [
    ['curl', curlOf(route, recorded, apiUrl)],
    ['TypeScript', typescriptOf(route, recorded)],
    ['Python', pythonOf(route, recorded, apiUrl)],
    [
      'Response',
      typeof recorded.response === 'string' ? recorded.response : JSON.stringify(recorded.response, null, 2),
    ],
  ];
  return forms
    .filter(([, text]) => text !== '' && text !== 'null')
    .map(
      ([name, text]) =>
        `<details name="${route.name}"${name === 'curl' ? ' open' : ''}><summary>${name}</summary><pre><code>${escapeHtml(text)}</code></pre></details>`,
    )
    .join('');
}
