// What another project gets: the client as JavaScript with declarations, which need nothing of this project.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const tsc = join(root, 'node_modules/.bin/tsc');

const program = `
import { catalogue, createClient, SluiceError, verifySignature, type Deployment, type Project, type SluiceEvent } from 'sluice/client';
const sluice = createClient({ url: 'http://127.0.0.1:1', token: 'x', maxRetries: 0 });
async function typed(): Promise<void> {
  for await (const project of sluice.projects.list({ limit: 5 })) { const p: Project = project; p.slug.trim(); }
  const made: Deployment = await sluice.deployments.create('prj', { environment: 'production', image: 'a:1' });
  await sluice.environments.rollback('prj', 'production');
  // @ts-expect-error no such strategy
  await sluice.deployments.create('prj', { environment: 'production', image: 'a:1', strategy: 'bold' });
  // @ts-expect-error the id is missing
  await sluice.deployments.get('prj');
  const show = (event: SluiceEvent) => event.type === 'alert.fired' ? event.data.rule_id : made.id;
  for await (const told of sluice.events.stream()) show(told);
  // @ts-expect-error a notice of a change has no sequence
  for await (const told of sluice.events.stream({ changes: 'true' })) told.sequence;
  for await (const told of sluice.events.stream({ changes: 'true' })) if (told.type !== 'changed') show(told);
}
const error = await sluice.projects.get('prj').catch((reason: unknown) => reason);
console.log(error instanceof SluiceError && error.code, await verifySignature('', 'x', 's'), typeof catalogue, typeof typed);
`;

test('built, it is typed and runs in a project that has nothing else', () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-client-')));
  try {
    const inside = join(folder, 'node_modules/sluice');
    execFileSync(tsc, ['-p', join(root, 'src/client/tsconfig.json'), '--outDir', join(folder, 'dist')]);
    mkdirSync(inside, { recursive: true });
    for (const kept of ['client', 'contract/errors.d.ts'])
      cpSync(join(folder, 'dist', kept), join(inside, 'dist', kept), { recursive: true });
    const entry = { types: './dist/client/index.d.ts', default: './dist/client/index.js' };
    writeFileSync(join(inside, 'package.json'), JSON.stringify({ type: 'module', exports: { './client': entry } }));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(folder, 'main.ts'), program);
    for (const resolution of ['nodenext', 'bundler']) {
      const module = resolution === 'nodenext' ? 'nodenext' : 'esnext';
      const args = ['--strict', '--noEmit', '--lib', 'esnext,dom', '--types', '', '--target', 'esnext'];
      const checked = spawnSync(tsc, [...args, '--module', module, '--moduleResolution', resolution, 'main.ts'], {
        cwd: folder,
        encoding: 'utf8',
      });
      assert.equal(checked.stdout, '', resolution);
      assert.equal(checked.status, 0, resolution);
    }
    const printed = execFileSync(process.execPath, ['main.ts'], { cwd: folder, encoding: 'utf8' });
    assert.equal(printed.trim(), 'network false function function');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
