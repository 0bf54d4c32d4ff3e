// push against a real S3 server, read back by a client that is not ours; conditions are looked at on the wire, because that
// server ignores them, and answered by a recorder in front of it that does not.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { onPath } from '../../scripts/packages.ts';
import { hashFile, listFiles } from '../../src/catalogue/files.ts';
import { withdrawStream } from '../../src/catalogue/publish.ts';
import { pushSite } from '../../src/catalogue/push.ts';
import type { SitePaths } from '../../src/catalogue/site-paths.ts';
import { S3 } from '../../src/lib/s3.ts';
import { startS3 } from '../helpers/s3.ts';
import {
  type Cleanup,
  collectCleanup,
  execute,
  listen,
  makeFolder,
  makeSource,
  runCatalogue,
  sharedSite,
  writeManifest,
} from './fixture.ts';

interface Seen {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
}

/** Passes requests on, notes them, and keeps the conditions of a real store. */
async function startRecorder(
  cleanup: Cleanup,
  target: string,
  refuse: (seen: Seen) => boolean = () => false,
  status = 412,
) {
  const seen: Seen[] = [];
  const forward = (from: IncomingMessage, to: ServerResponse) => {
    const one = { method: from.method!, path: from.url!, headers: from.headers };
    seen.push(one);
    if (refuse(one)) {
      from.resume();
      to.writeHead(status).end(status === 412 ? '<Error><Code>PreconditionFailed</Code></Error>' : '');
      return;
    }
    const { hostname, port } = new URL(target);
    const options = { hostname, port, method: from.method, path: from.url, headers: from.headers };
    const onward = httpRequest(options, (answer) => {
      to.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(to);
    });
    from.pipe(onward);
  };
  const base = await listen(cleanup, forward);
  return { base, seen, writes: () => seen.filter(({ method }) => method === 'PUT').map(({ path }) => path) };
}

const storeAt = (endpoint: string, prefix = '') => ({
  bucket: 'films',
  prefix,
  region: 'us-east-1',
  endpoint,
  accessKeyId: 'S3RVER',
  secretAccessKey: 'S3RVER',
});

describe('push', () => {
  const cleanup = collectCleanup();
  after(cleanup.undoAll);
  let good: SitePaths;
  let s3 = '';

  const publish = sharedSite(async (build) => {
    await makeSource(build.folder, 'a.mp4');
    await makeSource(build.folder, 'b.mp4', { hue: 90 });
    const streams = ['a', 'b'].map(
      (id) => `{ id: ${id}, title: ${id}, source: ${id}.mp4, progressive: [36p], hls: ${id === 'a'} }`,
    );
    await writeManifest(build.folder, streams);
    await build.build();
  });
  const copy = async (t: Cleanup): Promise<SitePaths> => (await publish(t)).paths;

  before(async () => {
    good = await copy(cleanup);
    const server = await startS3('films');
    cleanup.after(() => server.stop());
    s3 = server.endpoint;
  });

  test('rclone reads back the very files, with their types and cache rules', { skip: !onPath('rclone') }, async (t) => {
    const pushed = await runCatalogue(['push', 's3://films/read', '--endpoint', s3, '--dir', good.site], {
      AWS_ACCESS_KEY_ID: 'S3RVER',
      AWS_SECRET_ACCESS_KEY: 'S3RVER',
    });
    assert.equal(pushed.code, 0, pushed.stderr);
    const folder = await makeFolder(t);
    const remote = `:s3,provider=Other,access_key_id=S3RVER,secret_access_key=S3RVER,endpoint='${s3}':films/read`;
    // Nothing else of the environment: AWS variables of the person who runs the tests must not get here.
    const env = { PATH: process.env.PATH, HOME: folder, RCLONE_CONFIG: '/dev/null' };
    await execute('rclone', ['copy', remote, join(folder, 'back')], { env });
    const names = await listFiles(join(folder, 'back'));
    const expected = (await listFiles(good.site)).filter(
      (name) => name.startsWith('media/') || !/\.(br|gz)$/.test(name),
    );
    assert.deepEqual(
      names,
      expected.filter((name) => !/SHA256SUMS\./.test(name)),
    );
    // A playlist is stored as gzip, and this client keeps what is stored.
    for (const name of names.filter((each) => each.endsWith('.m3u8')))
      await writeFile(join(folder, 'back', name), gunzipSync(await readFile(join(folder, 'back', name))));
    for (const name of names)
      assert.equal(
        (await hashFile(join(folder, 'back', name))).sha256,
        (await hashFile(join(good.site, name))).sha256,
        name,
      );
    const answer = await fetch(`${s3}/films/read/media/a/hls/main.m3u8`);
    assert.equal(answer.headers.get('content-type'), 'application/vnd.apple.mpegurl');
    assert.equal(answer.headers.get('content-encoding'), 'gzip');
    assert.match(await answer.text(), /^#EXTM3U\n/);
    assert.equal(answer.headers.get('cache-control'), 'public, max-age=31536000, immutable');
    assert.equal((await fetch(`${s3}/films/read/health.txt`)).headers.get('cache-control'), 'no-store');
  });

  test('media first, checksums, and the document last; every immutable write only where nothing is', async (t) => {
    const recorder = await startRecorder(t, s3);
    await pushSite({ paths: good, store: storeAt(recorder.base, 'order'), prune: false });
    const writes = recorder.writes();
    const last = writes.findLastIndex((path) => path.includes('/media/') && !path.endsWith('SHA256SUMS'));
    const sums = writes.findIndex((path) => path.endsWith('media/SHA256SUMS'));
    assert.ok(last < sums);
    assert.equal(writes.at(-1), '/films/order/api/streams.json');
    assert.equal(sums, writes.length - 2);
    for (const { path, headers } of recorder.seen.filter(({ method }) => method === 'PUT')) {
      const isMedia = path.includes('/media/') || /streams\.json$|\.state\//.test(path);
      assert.equal(headers['if-none-match'], isMedia ? '*' : undefined, path);
      if (isMedia) assert.match(String(headers.authorization), /SignedHeaders=[^,]*if-none-match/);
    }
  });

  test('a second push sends nothing but what guards the document, and that only over the one it read', async (t) => {
    await pushSite({ paths: good, store: storeAt(s3, 'again'), prune: false });
    const recorder = await startRecorder(t, s3);
    const result = await pushSite({ paths: good, store: storeAt(recorder.base, 'again'), prune: false });
    assert.deepEqual(recorder.writes(), ['/films/again/media/SHA256SUMS', '/films/again/api/streams.json']);
    const document = recorder.seen.findLast(({ method }) => method === 'PUT')!;
    const etag = (await fetch(`${s3}/films/again/api/streams.json`)).headers.get('etag');
    assert.equal(document.headers['if-match'], etag);
    assert.equal(result.sent, 2);
  });

  test('somebody else pushed meanwhile: the document is not overwritten', async (t) => {
    const refuse = ({ method, path }: Seen) => method === 'PUT' && path.endsWith('streams.json');
    const recorder = await startRecorder(t, s3, refuse);
    const pushing = pushSite({ paths: good, store: storeAt(recorder.base, 'race'), prune: false });
    await assert.rejects(pushing, /another push changed the store/);
  });

  test('an interrupted push goes on where it was', async (t) => {
    let left = 4;
    const cut = new AbortController();
    const refuse = ({ method }: Seen) => {
      if (method === 'PUT' && left-- === 0) cut.abort();
      return false;
    };
    const recorder = await startRecorder(t, s3, refuse);
    const store = storeAt(recorder.base, 'resume');
    await assert.rejects(pushSite({ paths: good, store, prune: false, signal: cut.signal }));
    assert.equal((await fetch(`${s3}/films/resume/api/streams.json`)).status, 404);
    const before = recorder.writes().slice(0, 4);
    recorder.seen.length = 0;
    const result = await pushSite({ paths: good, store, prune: false });
    assert.ok(result.present >= 1, 'what was sent is not sent again');
    assert.equal(new Set(recorder.writes()).size, recorder.writes().length);
    assert.ok(before.some((path) => !recorder.writes().includes(path)));
    assert.equal((await fetch(`${s3}/films/resume/api/streams.json`)).status, 200);
  });

  test('what a killed push left is replaced, only over what was seen there; whole objects are not sent again', async (t) => {
    const store = storeAt(s3, 'left');
    const put = (name: string, bytes: string) =>
      new S3(store).put(`left/media/${name}`, new Blob([bytes]), {
        type: 'video/mp4',
        cacheControl: 'no-store',
        sha256: createHash('sha256').update(bytes).digest('hex'),
      });
    const film = await readFile(join(good.site, 'media/a/36p.mp4'), 'latin1');
    await put('a/36p.mp4', film.slice(0, 100));
    await put('a/poster.jpg', 'x'.repeat((await readFile(join(good.site, 'media/a/poster.jpg'))).length));
    const recorder = await startRecorder(t, s3);
    await pushSite({ paths: good, store: storeAt(recorder.base, 'left'), prune: false });
    for (const name of ['a/36p.mp4', 'a/poster.jpg']) {
      const sent = recorder.seen.find(({ method, path }) => method === 'PUT' && path.endsWith(name))!;
      assert.match(sent.headers['if-match']!, /^"\w+"$/, name);
      const back = Buffer.from(await (await fetch(`${s3}/films/left/media/${name}`)).arrayBuffer());
      assert.ok(back.equals(await readFile(join(good.site, 'media', name))), name);
    }
  });

  test('an object that the store lost, or part of, is sent again by the next push', async (t) => {
    const store = storeAt(s3, 'lost');
    await pushSite({ paths: good, store, prune: false });
    await new S3(store).remove('lost/media/a/36p.mp4');
    const about = {
      type: 'image/jpeg',
      cacheControl: 'no-store',
      sha256: createHash('sha256').update('').digest('hex'),
    };
    await new S3(store).put('lost/media/a/poster.jpg', new Blob([]), about);
    const recorder = await startRecorder(t, s3);
    await pushSite({ paths: good, store: storeAt(recorder.base, 'lost'), prune: false });
    const media = recorder.writes().filter((path) => path.includes('/media/') && !path.endsWith('SHA256SUMS'));
    assert.deepEqual(media.sort(), ['/films/lost/media/a/36p.mp4', '/films/lost/media/a/poster.jpg']);
    assert.equal((await fetch(`${s3}/films/lost/media/a/36p.mp4`)).status, 200);
  });

  test('an upload of which the store kept only a part is told before anything names it', async (t) => {
    const recorder = await startRecorder(
      t,
      s3,
      ({ method, path }) => method === 'PUT' && path.endsWith('b/36p.mp4'),
      200,
    );
    const pushing = pushSite({ paths: good, store: storeAt(recorder.base, 'swallowed'), prune: false });
    await assert.rejects(pushing, /media\/b\/36p\.mp4: the store has none of \d+ bytes; push again/);
    assert.equal((await fetch(`${s3}/films/swallowed/api/streams.json`)).status, 404);
  });

  test('the ledger lies beside the site, and nothing of the site names it', async () => {
    await pushSite({ paths: good, store: storeAt(s3, 'ledger/site'), prune: true });
    const stored = await fetch(`${s3}/films/ledger/site.state/ledger.jsonl`);
    assert.equal(await stored.text(), await readFile(good.ledger, 'utf8'));
    assert.equal(stored.headers.get('cache-control'), 'private, no-store');
    const keys = (await new S3(storeAt(s3)).list('ledger/site/')).map(({ key }) => key);
    assert.ok(keys.length > 10 && !keys.some((key) => key.includes('ledger.jsonl')));
  });

  test('a copy that missed a withdrawal is refused before anything is sent, with what it lacks', async (t) => {
    const [stale, fresh] = [await copy(t), await copy(t)];
    await withdrawStream({ paths: fresh, id: 'a', purge: false, now: () => new Date('2026-05-01T00:00:00Z') });
    await pushSite({ paths: fresh, store: storeAt(s3, 'stale'), prune: false });
    const recorder = await startRecorder(t, s3);
    const pushing = pushSite({ paths: stale, store: storeAt(recorder.base, 'stale'), prune: false });
    await assert.rejects(pushing, (error: Error) => {
      assert.match(error.message, /older than the store/);
      assert.match(error.message, /this copy lacks the withdrawal of a \(2026-05-01/);
      return true;
    });
    assert.deepEqual(recorder.writes(), []);
    assert.doesNotMatch(await (await fetch(`${s3}/films/stale/api/streams.json`)).text(), /"id": "a"/);
  });

  test('copies that went different ways are refused, and so is a site without its ledger', async (t) => {
    const [one, other, bare] = [await copy(t), await copy(t), await copy(t)];
    await withdrawStream({ paths: one, id: 'a', purge: false, now: () => new Date() });
    await withdrawStream({ paths: other, id: 'b', purge: false, now: () => new Date() });
    await pushSite({ paths: one, store: storeAt(s3, 'ways'), prune: false });
    const push = (paths: SitePaths) => pushSite({ paths, store: storeAt(s3, 'ways'), prune: false });
    await assert.rejects(push(other), /different histories[\s\S]*lacks the withdrawal of a/);
    await rm(bare.ledger);
    await assert.rejects(push(bare), /ledger\.jsonl does not exist; the ledger goes to the store/);
  });

  test('a store that was filled before ledgers were pushed takes ours, if it knows every stream there', async (t) => {
    await pushSite({ paths: good, store: storeAt(s3, 'adopt'), prune: false });
    await new S3(storeAt(s3)).remove('adopt.state/ledger.jsonl');
    const paths = await copy(t);
    const ledger = await readFile(paths.ledger, 'utf8');
    await writeFile(paths.ledger, `${ledger.split('\n')[0]}\n`);
    const push = () => pushSite({ paths, store: storeAt(s3, 'adopt'), prune: false });
    await assert.rejects(push(), /stream b is in the store and not in the ledger/);
    await writeFile(paths.ledger, ledger);
    await push();
    assert.equal(await (await fetch(`${s3}/films/adopt.state/ledger.jsonl`)).text(), ledger);
  });

  test('a store that has other content under a path is left alone', async (t) => {
    await pushSite({ paths: good, store: storeAt(s3, 'other'), prune: false });
    const paths = await copy(t);
    const sums = await readFile(join(paths.site, 'media/SHA256SUMS'), 'utf8');
    await writeFile(join(paths.site, 'media/SHA256SUMS'), sums.replace(/^\w{64}/, 'f'.repeat(64)));
    await assert.rejects(
      pushSite({ paths, store: storeAt(s3, 'other'), prune: false }),
      /other content under this path/,
    );
  });

  test('prune removes what was purged, after the document stopped naming it', async (t) => {
    const paths = await copy(t);
    await pushSite({ paths, store: storeAt(s3, 'prune'), prune: false });
    await withdrawStream({ paths, id: 'a', purge: true, now: () => new Date() });
    const recorder = await startRecorder(t, s3);
    const { removed } = await pushSite({ paths, store: storeAt(recorder.base, 'prune'), prune: true });
    assert.ok(removed > 5);
    const document = recorder.seen.findLastIndex(
      ({ method, path }) => method === 'PUT' && path.endsWith('streams.json'),
    );
    const firstRemoval = recorder.seen.findIndex(({ method }) => method === 'DELETE');
    assert.ok(document < firstRemoval);
    assert.equal((await fetch(`${s3}/films/prune/media/a/36p.mp4`)).status, 404);
    assert.equal((await fetch(`${s3}/films/prune/media/b/36p.mp4`)).status, 200);
  });

  test('a large file goes in parts, joined under the same condition', async (t) => {
    const paths = await copy(t);
    const path = join(paths.site, 'media/b/36p.mp4');
    await writeFile(path, Buffer.alloc(70 * 1024 * 1024, 7));
    const { sha256 } = await hashFile(path);
    const sums = await readFile(join(paths.site, 'media/SHA256SUMS'), 'utf8');
    await writeFile(join(paths.site, 'media/SHA256SUMS'), sums.replace(/^\w{64}(?= {2}b\/36p\.mp4$)/m, sha256));
    const recorder = await startRecorder(t, s3);
    await pushSite({ paths, store: storeAt(recorder.base, 'parts'), prune: false });
    const joined = recorder.seen.find((each) => each.method === 'POST' && /uploadId=/.test(each.path))!;
    assert.equal(joined.headers['if-none-match'], '*');
    const back = Buffer.from(await (await fetch(`${s3}/films/parts/media/b/36p.mp4`)).arrayBuffer());
    assert.equal(back.length, 70 * 1024 * 1024);
    assert.ok(back.equals(await readFile(path)));
  });

  test('without keys or with a wrong address the command says what it needs', async () => {
    const env = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' };
    assert.match((await runCatalogue(['push', 's3://films', '--dir', good.site], env)).stderr, /AWS_ACCESS_KEY_ID/);
    assert.equal((await runCatalogue(['push', 'films', '--dir', good.site])).code, 2);
    assert.ok(existsSync(good.site));
  });
});
