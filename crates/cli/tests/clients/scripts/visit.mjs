// Visits a page with Chromium: visit.mjs URL PROFILE_FOLDER prints, as JSON, what came, what failed and what the page became.
// It speaks the DevTools protocol over two pipes, so it needs no package.
import { spawn } from 'node:child_process';

const PATIENCE_MS = 120_000;
const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-extensions',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--no-proxy-server',
  '--ignore-certificate-errors',
  '--remote-debugging-pipe',
];
const SEEN = `({
  paragraphs: document.querySelectorAll('p').length,
  colour: getComputedStyle(document.body).color,
  title: document.title,
  picture_widths: [...document.images].map((image) => image.naturalWidth),
})`;

const [url, profile] = process.argv.slice(2);
const browser = spawn('chromium', [...FLAGS, `--user-data-dir=${profile}`], {
  stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
});
const [toBrowser, fromBrowser] = [browser.stdio[3], browser.stdio[4]];

function giveUp(why) {
  console.error(`${url}: ${why}`);
  browser.kill('SIGKILL');
  process.exit(1);
}
setTimeout(() => giveUp(`not loaded after ${PATIENCE_MS} ms`), PATIENCE_MS).unref();

let lastId = 0;
const calls = new Map();
function call(method, params = {}, sessionId) {
  const id = ++lastId;
  toBrowser.write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve) => calls.set(id, resolve));
}

const underWay = new Set();
const responses = new Map();
const failed = [];
let isLoaded = false;
let onChange = () => {};
const EVENTS = {
  'Network.requestWillBeSent': ({ requestId, request }) => {
    // Not what stands in the page itself.
    if (request.url.startsWith('http')) underWay.add(requestId);
  },
  'Network.responseReceived': ({ requestId, response: { url, status, protocol } }) => {
    if (underWay.has(requestId)) responses.set(requestId, { url, status, protocol });
  },
  'Network.loadingFinished': ({ requestId }) => underWay.delete(requestId),
  'Network.loadingFailed': ({ requestId, errorText }) => {
    underWay.delete(requestId);
    failed.push({ url: responses.get(requestId)?.url, errorText });
  },
  'Page.loadEventFired': () => (isLoaded = true),
};

let rest = '';
fromBrowser.setEncoding('utf8');
fromBrowser.on('data', (text) => {
  const messages = (rest + text).split('\0');
  rest = messages.pop();
  for (const { id, method, params, result, error } of messages.map((message) => JSON.parse(message))) {
    if (error) giveUp(error.message);
    else if (id) calls.get(id)(result);
    else EVENTS[method]?.(params);
  }
  onChange();
});

const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
await call('Page.enable', {}, sessionId);
await call('Network.enable', {}, sessionId);
const { errorText } = await call('Page.navigate', { url }, sessionId);
if (errorText) giveUp(errorText);
await new Promise((resolve) => {
  onChange = () => isLoaded && underWay.size === 0 && resolve();
  onChange();
});
const evaluation = { expression: SEEN, returnByValue: true };
const { result } = await call('Runtime.evaluate', evaluation, sessionId);
console.log(JSON.stringify({ responses: [...responses.values()], failed, page: result.value }));
call('Browser.close');
browser.on('exit', () => process.exit(0));
