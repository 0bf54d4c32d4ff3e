// One app for all tests of a file or suite: started before the first, stopped after the last.
import { after, before } from 'node:test';
import { startApp, type TestApp, type TestAppOptions } from './app.ts';

/** Its fields are there in tests, not in other root hooks of the file: those may run before the app has started. */
export interface SharedApp extends TestApp {
  /** Creates a project and returns its id. */
  newProject(name?: string): Promise<string>;
}

export function sharedApp(options: TestAppOptions = {}): SharedApp {
  const shared = {
    async newProject(name = 'Shop') {
      return (await shared.call('POST', '/v1/projects', { body: { name } })).body.id;
    },
  } as SharedApp;
  before(async () => {
    Object.assign(shared, await startApp(options));
  });
  after(() => shared.stop?.());
  return shared;
}
