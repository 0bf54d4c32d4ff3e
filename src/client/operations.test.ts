// The client against the contract: a method for every route, a route for every method, and nothing else of it at run
// time.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type * as contractAlerts from '../contract/alerts.ts';
import { routes } from '../contract/api.ts';
import type { Method, Of, RouteDeclaration } from '../contract/declare.ts';
import type * as contractDeployments from '../contract/deployments.ts';
import type * as contractDomains from '../contract/domains.ts';
import type * as contractEvents from '../contract/events.ts';
import type * as contractProjects from '../contract/projects.ts';
import type * as contractRevisions from '../contract/revisions.ts';
import type { Scope as ContractScope } from '../contract/scopes.ts';
import {
  type CreateDeployment,
  createClient,
  type EventKind,
  type EventRecords,
  type Project,
  type Scope,
  type Sluice,
} from './index.ts';
import type { Method as ClientMethod } from './request.ts';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Fits<A, B> = A extends B ? (B extends A ? true : false) : false;
const same = <_ extends true>(): void => undefined;

test('the types are those of the contract', () => {
  same<Same<Project, contractProjects.Project>>();
  same<Same<EventKind, contractEvents.EventKind>>();
  same<Same<EventRecords['deployment.created'], contractDeployments.Deployment>>();
  same<Same<EventRecords['alert.fired'], contractAlerts.Alert>>();
  same<Same<EventRecords['domain.certificate_renewed'], contractDomains.Domain>>();
  same<Fits<EventRecords['revision.rolled_back'], Of<typeof contractEvents.RolledBackRevision>>>();
  same<Same<Awaited<ReturnType<Sluice['revisions']['get']>>, contractRevisions.Revision>>();
  same<Same<Scope, ContractScope>>();
  same<Same<ClientMethod, Method>>();
  same<Same<CreateDeployment['strategy'], contractDeployments.Strategy | undefined>>();
  same<Same<Parameters<Sluice['deployments']['get']>['length'], 2 | 3>>();
  same<Same<Parameters<Sluice['revisions']['get']>['length'], 3 | 4>>();
  // A body in which nothing is required may be left out; that of a change may not.
  same<Same<Parameters<Sluice['environments']['rollback']>['length'], 2 | 3 | 4>>();
  same<Same<Parameters<Sluice['projects']['create']>['length'], 1 | 2>>();
  same<Same<Parameters<Sluice['projects']['update']>['length'], 2 | 3>>();
});

const camel = (text: string) => text.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
const placesOf = ({ path }: RouteDeclaration) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `a/${name} b`);

interface Sent {
  method: string;
  url: URL;
  body: unknown;
  headers: Headers;
}

/** A client whose requests end here. */
function recorder(answer: () => Response) {
  const sent: Sent[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const body = init?.body == null ? undefined : JSON.parse(String(init.body));
    sent.push({
      method: init?.method ?? 'GET',
      url: new URL(String(input)),
      body,
      headers: new Headers(init?.headers),
    });
    return answer();
  };
  const client = createClient({ url: 'http://sluice.test/below/', token: 'secret', fetch, maxRetries: 0 });
  return { sent, methods: client as unknown as Record<string, Record<string, (...args: unknown[]) => unknown>> };
}

const emptyPage = JSON.stringify({ data: [], page: { next: null, has_more: false } });

async function carryOut(result: unknown): Promise<void> {
  if (typeof result === 'object' && result !== null && Symbol.asyncIterator in result) {
    for await (const _ of result as AsyncIterable<unknown>);
  } else await result;
}

describe('every route has a method', () => {
  for (const route of routes) {
    test(route.name, async () => {
      const [group, verb] = route.name.split('.').map(camel) as [string, string];
      const { sent, methods } = recorder(() =>
        route.media === 'text/event-stream' ? new Response('no', { status: 404 }) : new Response(emptyPage),
      );
      const method = methods[group]?.[verb];
      assert.ok(method, `the client has no ${group}.${verb}; add it to src/client/operations.ts`);
      const takesQuery = Object.keys(route.query.properties).length > 0;
      const given = [
        ...placesOf(route),
        ...(route.body ? [{ field: 1 }] : []),
        ...(takesQuery ? [{ some: 'x&y', none: undefined }] : []),
        route.media ? { lastEventId: 'evt_1' } : { ifMatch: '"7"' },
      ];
      await carryOut(method(...given)).catch((error) => assert.equal(error.status, 404));
      const [request] = sent as [Sent];
      assert.equal(sent.length, 1);
      assert.equal(request.method, route.method);
      const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(`a/${name} b`));
      assert.equal(request.url.pathname, `/below/v1${path}`);
      assert.equal(request.url.searchParams.get('some'), takesQuery ? 'x&y' : null);
      assert.equal(request.url.searchParams.has('none'), false);
      assert.deepEqual(request.body, route.body ? { field: 1 } : undefined);
      assert.equal(request.headers.get('content-type'), route.body ? 'application/json' : null);
      assert.equal(request.headers.get('authorization'), 'Bearer secret');
      assert.equal(request.headers.get('if-match'), route.media ? null : '"7"');
      assert.equal(request.headers.has('idempotency-key'), route.method === 'POST');
      const isList = 'page' in ((route.response as { properties?: object } | undefined)?.properties ?? {});
      assert.equal(typeof (method(...given) as { page?: unknown }).page === 'function', isList, 'a Listing if a list');
    });
  }
});

test('every method has a route', () => {
  const names = new Set(routes.map(({ name }) => camel(name)));
  const { methods } = recorder(() => new Response('{}'));
  for (const [group, verbs] of Object.entries(methods)) {
    if (group === 'waitFor') continue;
    for (const verb of Object.keys(verbs)) assert.ok(names.has(`${group}.${verb}`), `${group}.${verb} has no route`);
  }
});

test('a path parameter that would lead elsewhere is refused before anything is sent', async () => {
  const { sent, methods } = recorder(() => new Response('{}'));
  for (const id of ['', '.', '..', undefined, null, 7]) {
    await assert.rejects(methods.projects!.get!(id) as Promise<unknown>, TypeError);
  }
  assert.deepEqual(sent, []);
});

test('at run time the client is only itself: of the contract it takes types', () => {
  const files = globSync('src/client/*.ts').filter((path) => !path.endsWith('.test.ts'));
  assert.ok(files.length > 10);
  for (const path of files) {
    const text = readFileSync(path, 'utf8');
    for (const [line, keyword, target] of text.matchAll(/^(import|export)[^;]*?from '([^']+)';/gm)) {
      const isOwn = /^\.\/[a-z-]+\.ts$/.test(target!);
      const isType = line.startsWith(`${keyword} type `) && target!.startsWith('../contract/');
      assert.ok(isOwn || isType, `${path}: ${line}`);
    }
    assert.doesNotMatch(text, /\bimport\(|\brequire\(|\bprocess\.|\bBuffer\b|node:/, path);
  }
});
