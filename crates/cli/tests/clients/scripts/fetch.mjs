// Asks with Node's fetch for what stands in the JSON on standard input, one after the other. Prints status and fields of the answers as
// JSON; each body goes to the file that is named for it.
import { readFileSync, writeFileSync } from 'node:fs';

const PATIENCE_MS = 60_000;

const answers = [];
for (const { method, url, fields, body_file } of JSON.parse(readFileSync(0, 'utf8'))) {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const response = await fetch(url, { method, headers: fields, redirect: 'manual', signal });
  writeFileSync(body_file, Buffer.from(await response.arrayBuffer()));
  answers.push({ status: response.status, fields: Object.fromEntries(response.headers) });
}
console.log(JSON.stringify(answers));
