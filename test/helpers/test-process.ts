// What a test process runs (scripts/test.ts starts it): a few test files one after another, each as a suite of its own.
// They share what has been loaded. Hooks at the top of a file run for that file alone.
import { describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import './at-end.ts';

const { files, env } = JSON.parse(process.argv[2]!) as { files: string[]; env: Record<string, string> };
Object.assign(process.env, env);
for (const file of files) describe(file, async () => void (await import(pathToFileURL(file).href)));
