// One app for all tests of a file or suite: started before the first, stopped after the last.
import { after, before } from 'node:test';
import { startApp, type TestApp, type TestAppOptions } from './app.ts';

/** Its fields are there in tests and in `prepare`, not in other root hooks of the file, which may run before it starts. */
export interface SharedApp extends TestApp {
  /** Creates a project and returns its id. */
  newProject(name?: string): Promise<string>;
}

/** `prepare` runs once the app has started, before the first test. */
export function sharedApp(options: TestAppOptions = {}, prepare?: (app: SharedApp) => unknown): SharedApp {
  const shared = {
    async newProject(name = 'Shop') {
      return (await shared.call('POST', '/v1/projects', { body: { name } })).body.id;
    },
  } as SharedApp;
  before(async () => {
    Object.assign(shared, await startApp(options));
    await prepare?.(shared);
  });
  after(() => shared.stop?.());
  return shared;
}
