// Usage: run.mjs FOLDER SERVER DEVICE [--query PREFIX]… [--sample COUNT] [--seed TEXT] [--shards COUNT] [--limit SECONDS]
//   [--seconds COUNT] [--passed FILE]… [--out FILE]
//
// Runs test cases of the suite in FOLDER (gather.sh) on a device, by default those of `shader,execution` that compute and use no
// textures, and on the device `text` those of `shader,validation`. Prints a table and the failures by test; FILE gets a line of JSON
// for each case. Exits with 1 if a case fails that expected.txt does not list.

import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import readline from 'node:readline';
import { parseArgs } from 'node:util';
import { openSuite } from './suite.mjs';

const here = import.meta.dirname;
const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    query: { type: 'string', multiple: true },
    sample: { type: 'string' },
    seed: { type: 'string', default: '' },
    shards: { type: 'string', default: '1' },
    limit: { type: 'string', default: '300' },
    seconds: { type: 'string' },
    passed: { type: 'string', multiple: true, default: [] },
    out: { type: 'string' },
  },
});
const [folder, server, device] = positionals;
const limit = 1000 * Number(options.limit);
const stopAt = options.seconds ? Date.now() + 1000 * Number(options.seconds) : Infinity;

/** Lines `QUERY: TEXT` of a file, without comments. A query may have a device in front: `vulkan webgpu:…`. */
function entries(name) {
  const lines = fs.readFileSync(path.join(here, name), 'utf8').split('\n').filter(line => line && !line.startsWith('#'));
  return lines.map(line => {
    const [, only, query, reason] = line.match(/^(?:(\w+) )?(webgpu:\S+?):? (.*)$/);
    return { only, query, reason, used: false };
  });
}
const applies = entry => !entry.only || entry.only === device;
const isBelow = query => entry => query.startsWith(entry.query);

// What somebody asks for is not outside.
const outside = entries('outside.txt').filter(entry => !options.query?.some(prefix => prefix.startsWith(entry.query)));
const isOutside = query => outside.some(isBelow(query));
const expected = entries('expected.txt').filter(applies);

/** All cases below the prefixes that are not outside of the scope. */
async function select() {
  const suite = await openSuite(folder);
  const prefixes = options.query ?? [`webgpu:shader,${device === 'text' ? 'validation' : 'execution'},`];
  const file = prefix => prefix.split(':').slice(0, 2).join(':');
  const files = new Set(prefixes.flatMap(prefix => suite.files(file(prefix))));
  const queries = [];
  for (const file of files) {
    if (isOutside(`${file}:`)) continue;
    queries.push(...(await suite.cases(file)).map(leaf => leaf.query.toString()));
  }
  const wanted = queries.filter(query => prefixes.some(prefix => query.startsWith(prefix)));
  return wanted.filter(query => !isOutside(query));
}

const hash = query => createHash('sha256').update(`${options.seed} ${query}`).digest('hex');
const shuffled = queries => queries.map(query => [hash(query), query]).sort().map(([, query]) => query);

/** `count` of the cases, chosen by the seed alone: they stay the same where the suite gets others. */
function sampled(queries, count) {
  const chosen = new Set(shuffled(queries).slice(0, count));
  return queries.filter(query => chosen.has(query));
}

/** In an order by the seed, as the time may end before the cases do; those that have passed are last, by the last file that says so. */
function mostUrgentFirst(queries) {
  const ranks = new Map();
  for (const [index, file] of options.passed.entries()) {
    const lines = fs.readFileSync(file, 'utf8').split('\n').filter(Boolean);
    const passed = lines.map(line => JSON.parse(line)).filter(({ status }) => ['pass', 'skip', 'outside'].includes(status));
    for (const result of passed) if (result.device === device) ranks.set(result.query, index + 1);
  }
  const rank = query => ranks.get(query) ?? 0;
  return shuffled(queries).sort((a, b) => rank(a) - rank(b));
}

/** Runs one process on a list of cases; the result is those that it left, if it ended early. */
function runShard(list, number, record) {
  const file = path.join(scratch, `cases-${number}`);
  fs.writeFileSync(file, list.join('\n'));
  const command = [process.execPath, path.join(here, 'shard.mjs'), folder, file];
  const child = spawn(server, [device, ...command], { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
  const end = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended already.
    }
  };
  const left = new Set(list);
  let [current, isDone, said, timer] = [null, false, [], null];
  const out = setTimeout(
    () => {
      [current, isDone] = [null, true];
      end();
    },
    Math.min(stopAt - Date.now(), 2 ** 31 - 1),
  );
  const finish = (query, result) => {
    clearTimeout(timer);
    left.delete(query);
    current = null;
    record({ query, ...result });
  };
  readline.createInterface({ input: child.stderr }).on('line', line => {
    if (!line.startsWith('\x1e')) return said.push(line);
    const { begin, done, end: query, ...result } = JSON.parse(line.slice(1));
    if (query) return finish(query, result);
    isDone ||= Boolean(done);
    if (!begin) return;
    [current, said] = [begin, []];
    timer = setTimeout(() => {
      finish(begin, { status: 'fail', ms: limit, log: `no end after ${options.limit} seconds` });
      end();
    }, limit);
  });
  return new Promise(resolve => {
    child.on('close', (code, signal) => {
      clearTimeout(out);
      const ended = `the process ended (${code ?? signal}): ${said.slice(-10).join('\n')}`;
      if (current) finish(current, { status: 'fail', ms: 0, log: ended });
      else if (!isDone && left.size === list.length) {
        for (const query of list) record({ query, status: 'fail', ms: 0, log: ended });
        left.clear();
      }
      resolve([...left]);
    });
  });
}

/** Runs a share of the cases to its end, in as many processes as it takes. */
async function runShare(list, number, record) {
  while (list.length && Date.now() < stopAt) list = await runShard(list, number, record);
}

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'cts-'));
process.on('exit', () => fs.rmSync(scratch, { recursive: true, force: true }));
let queries = await select();
if (options.sample) queries = sampled(queries, Number(options.sample));
if (options.seconds) queries = mostUrgentFirst(queries);
if (options.out) fs.writeFileSync(options.out, '');
const counts = { pass: 0, fail: 0, expected: 0, skip: 0, outside: 0 };
const failures = new Map();
function record(result) {
  let { query, status, log } = result;
  if (status === 'warn') status = 'pass';
  const entry = expected.find(isBelow(query));
  if (status === 'fail' && entry) status = 'expected';
  if (status === 'expected') entry.used = true;
  counts[status] += 1;
  if (options.out) fs.appendFileSync(options.out, `${JSON.stringify({ device, ...result, status })}\n`);
  if (status !== 'fail') return;
  const test = query.split(':').slice(0, 3).join(':');
  failures.set(test, [...(failures.get(test) ?? []), { query, log }]);
}
const shards = Number(options.shards);
const share = number => queries.filter((_, index) => index % shards === number);
await Promise.all([...Array(shards).keys()].map(number => runShare(share(number), number, record)));

for (const [test, all] of [...failures].sort()) {
  console.log(`${test}: ${all.length}`);
  for (const { query, log } of all.slice(0, 3)) console.log(`  ${query}\n    ${log.slice(0, 500).replaceAll('\n', '\n    ')}`);
}
// An entry that nothing needs hides what breaks later.
const ran = Object.values(counts).reduce((sum, count) => sum + count, 0);
const isWhole = !options.sample && !options.query && ran === queries.length;
const needless = isWhole ? expected.filter(entry => !entry.used) : [];
for (const { query } of needless) console.log(`expected.txt: nothing below ${query} fails; remove it`);
const rated = counts.pass + counts.fail + counts.expected;
console.log('\n| device | cases | passed | failed | expected failures | skipped by the suite | outside of the scope |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
const row = [device, ran, counts.pass, counts.fail, counts.expected, counts.skip, counts.outside];
console.log(`| ${row.join(' | ')} |`);
if (ran < queries.length) console.log(`${queries.length - ran} cases were left when the time was over`);
console.log(`passed: ${((100 * counts.pass) / Math.max(rated, 1)).toFixed(2)}% of ${rated}`);
process.exit(counts.fail || needless.length ? 1 : 0);
