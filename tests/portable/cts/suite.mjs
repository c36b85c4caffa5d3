// The suite's own loader, over the files that gather.sh has made.

import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export async function openSuite(folder) {
  const load = name => import(pathToFileURL(path.join(folder, 'out', name)));
  const { TestFileLoader } = await load('common/internal/file_loader.js');
  const { parseQuery } = await load('common/internal/query/parseQuery.js');
  const specs = fs
    .readdirSync(path.join(folder, 'out/webgpu'), { recursive: true })
    .filter(name => name.endsWith('.spec.js'))
    .map(name => name.slice(0, -'.spec.js'.length).split(path.sep))
    .sort();
  class Loader extends TestFileLoader {
    async listing() {
      return specs.map(file => ({ file }));
    }
    import(name) {
      return load(name);
    }
  }
  const loader = new Loader();
  return {
    load,
    /** The files whose query begins with `prefix`, as `webgpu:a,b,c`. */
    files: prefix => specs.map(file => `webgpu:${file.join(',')}`).filter(file => file.startsWith(prefix)),
    /** The test cases of a file. */
    cases: async file => [...(await loader.loadCases(parseQuery(`${file}:*`)))],
  };
}
