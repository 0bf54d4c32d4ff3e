// Media on its way into the store. Nothing that is whole is ever overwritten; what a killed push left, or a store lost part
// of, is replaced. One listing before and one after tell the sizes of all objects, in a request for each thousand.

import type { PutOptions, S3 } from '../../lib/s3.ts';
import { CatalogueError } from '../fault.ts';
import { cacheControl, typeOf } from '../origin/header-rules.ts';
import { type StoredForm, storedForm } from './local-site.ts';

export class MediaUpload {
  readonly #s3: S3;
  readonly #site: string;
  /** By path relative to media/. */
  readonly #digests: Map<string, string>;
  /** Key of the folder, with the slash. */
  readonly #folder: string;
  /** Sizes in the store, by path relative to media/. */
  #stored = new Map<string, number>();
  readonly #sent = new Map<string, number>();

  constructor(s3: S3, site: string, digests: Map<string, string>, folder: string) {
    this.#s3 = s3;
    this.#site = site;
    this.#digests = digests;
    this.#folder = folder;
  }

  async look(): Promise<void> {
    const objects = await this.#s3.list(this.#folder);
    this.#stored = new Map(objects.map(({ key, size }) => [key.slice(this.#folder.length), size]));
  }

  /** Whether the file had to be sent. `isPublished`: the checksums in the store, written after their media, list it. */
  async put(name: string, isPublished: boolean): Promise<boolean> {
    const form = await storedForm(this.#site, name, this.#digests);
    const size = this.#stored.get(name);
    if (size === form.body.size && isPublished) return false;
    if (size === undefined) return this.#send(name, form, { ifNoneMatch: '*' });
    const there = await this.#s3.head(this.#folder + name);
    if (there === null) return this.#send(name, form, { ifNoneMatch: '*' });
    if (there.sha256 === this.#digests.get(name) && there.size === form.body.size) return false;
    return this.#send(name, form, { ifMatch: there.etag });
  }

  async #send(name: string, { body, encoding, sha256: bodySha256 }: StoredForm, condition: PutOptions['condition']) {
    const sha256 = this.#digests.get(name)!;
    const about = {
      type: typeOf(`media/${name}`),
      cacheControl: cacheControl.media,
      sha256,
      encoding,
      // The digest that people know is of the file; the store has to check the bytes that it is sent.
      bodySha256,
      condition,
    };
    if ((await this.#s3.put(this.#folder + name, body, about)) !== 'stored') {
      const there = await this.#s3.head(this.#folder + name);
      if (there?.sha256 !== sha256)
        throw new CatalogueError(`media/${name}: another push is writing other content under this path`);
      return false;
    }
    this.#sent.set(name, body.size);
    return true;
  }

  /** Everything that was sent has to be there, whole, before anything names it. */
  async confirm(): Promise<void> {
    if (this.#sent.size === 0) return;
    await this.look();
    const faults = [...this.#sent].flatMap(([name, size]) => {
      const stored = this.#stored.get(name);
      return stored === size ? [] : [`media/${name}: the store has ${stored ?? 'none'} of ${size} bytes; push again`];
    });
    if (faults.length > 0) throw new CatalogueError(faults.slice(0, 50));
  }
}
