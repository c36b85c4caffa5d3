// Usage: shard.mjs FOLDER CASES, started by the server. Runs the test cases that the file CASES lists, one query a line, and says on
// standard error when one begins and how it ended: lines with RS (0x1e) in front, as others write there, too.

import fs from 'node:fs';
import { makeGpu, state } from './gpu.mjs';
import { openSuite } from './suite.mjs';

const [folder, list] = process.argv.slice(2);
// Standard output is the way to the server.
for (const name of ['log', 'info', 'debug']) console[name] = console.error;
const say = object => fs.writeSync(2, `\x1e${JSON.stringify(object)}\n`);

const suite = await openSuite(folder);
const { getDefaultLimits } = await suite.load('webgpu/capability_info.js');
const limits = Object.fromEntries(Object.entries(getDefaultLimits('core')).map(([name, { default: value }]) => [name, value]));
const { setGPUProvider } = await suite.load('common/util/navigator_gpu.js');
const gpu = makeGpu(limits);
setGPUProvider(() => gpu);
const { globalTestConfig } = await suite.load('common/framework/test_config.js');
// A request blocks this process: the suite's own timers would fire although nothing hangs.
globalTestConfig.noRaceWithRejectOnTimeout = true;
const { Logger } = await suite.load('common/internal/logging/logger.js');

async function run(leaf, query) {
  Object.assign(state, { outside: null, uncaptured: [] });
  say({ begin: query });
  const [recorder, result] = new Logger().record(query);
  const start = performance.now();
  await leaf.run(recorder);
  const ms = Math.round(performance.now() - start);
  const notes = /\b(INFO|SKIP)$/;
  const logs = result.status === 'skip' ? result.logs : result.logs?.filter(log => !notes.test(log.name));
  const texts = (logs ?? []).map(log => `${log.name}: ${log.message}`.slice(0, 2000));
  const uncaptured = state.uncaptured.map(error => `uncaptured: ${error}`);
  let status = result.status;
  if (uncaptured.length) status = 'fail';
  // A case that uses textures is not counted, whatever came of it.
  if (state.outside) status = 'outside';
  say({ end: query, status, ms, log: [...texts, ...uncaptured].join('\n').slice(0, 6000) });
}

/** By file: its cases, by query. Each file is loaded once, whatever the order of the list is. */
const files = new Map();
async function casesOf(file) {
  const cases = async () => new Map((await suite.cases(file)).map(leaf => [leaf.query.toString(), leaf]));
  if (!files.has(file)) files.set(file, await cases());
  return files.get(file);
}

for (const query of fs.readFileSync(list, 'utf8').split('\n').filter(Boolean)) {
  const leaf = (await casesOf(query.split(':').slice(0, 2).join(':'))).get(query);
  if (leaf) await run(leaf, query);
  else say({ end: query, status: 'fail', ms: 0, log: 'the suite has no such test case' });
}
say({ done: true });
process.exit(0);
