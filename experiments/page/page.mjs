// Loads a page in Chromium, as a first visit, and prints when what was there:
// node page.mjs URL PROFILE_FOLDER prints {"first_paint_ms", "first_contentful_paint_ms", "html_ms", "text_ms", "load_ms", "protocol"}.
// It speaks the DevTools protocol over two pipes, so it needs no package.
import { spawn } from 'node:child_process';

const LOAD_MS_MAX = 120_000;
const [url, profile] = process.argv.slice(2);

const browser = spawn(
  'chromium',
  [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-extensions',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--ignore-certificate-errors',
    `--user-data-dir=${profile}`,
    '--remote-debugging-pipe',
  ],
  { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
);
const [toBrowser, fromBrowser] = [browser.stdio[3], browser.stdio[4]];

let lastId = 0;
const answers = new Map();
const events = new Map();
let rest = '';
fromBrowser.setEncoding('utf8');
fromBrowser.on('data', (text) => {
  const messages = (rest + text).split('\0');
  rest = messages.pop();
  for (const message of messages.map((message) => JSON.parse(message))) {
    if (message.id) {
      const { resolve, reject } = answers.get(message.id);
      answers.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    } else {
      events.get(message.method)?.();
    }
  }
});

function call(method, params = {}, sessionId) {
  const id = ++lastId;
  toBrowser.write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve, reject) => answers.set(id, { resolve, reject }));
}

function happened(method) {
  return new Promise((resolve) => events.set(method, resolve));
}

const IN_PAGE = `(() => {
  const navigation = performance.getEntriesByType('navigation')[0];
  const styles = performance.getEntriesByType('resource').filter((entry) => entry.initiatorType === 'link');
  const paint = (name) => performance.getEntriesByName(name)[0]?.startTime ?? null;
  return {
    first_paint_ms: paint('first-paint'),
    first_contentful_paint_ms: paint('first-contentful-paint'),
    html_ms: navigation.responseEnd,
    // Nothing of a text is shown before its style sheets are there.
    text_ms: Math.max(navigation.responseEnd, ...styles.map((entry) => entry.responseEnd)),
    load_ms: navigation.loadEventEnd,
    protocol: navigation.nextHopProtocol,
  };
})()`;

const timeout = setTimeout(() => {
  console.error(`${url}: not loaded after ${LOAD_MS_MAX} ms`);
  browser.kill('SIGKILL');
  process.exit(1);
}, LOAD_MS_MAX);

const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
await call('Page.enable', {}, sessionId);
const loaded = happened('Page.loadEventFired');
const { errorText } = await call('Page.navigate', { url }, sessionId);
if (errorText) throw new Error(`${url}: ${errorText}`);
await loaded;
// The entry of the load ends after its event.
await new Promise((resolve) => setTimeout(resolve, 200));
const evaluation = { expression: IN_PAGE, returnByValue: true };
const { result } = await call('Runtime.evaluate', evaluation, sessionId);
console.log(JSON.stringify(result.value));
clearTimeout(timeout);
await call('Browser.close');
