// Looks at a page with Chromium: URL PROFILE WIDTH UNTIL PATIENCE_MS light|dark scripts|plain [PICTURE] prints, as JSON, what it became.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const [url, profile, width, until, patience, colours, scripts, picture] = process.argv.slice(1);
const LOOK_EVERY_MS = 50;
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
  '--remote-debugging-pipe',
  `--user-data-dir=${profile}`,
];
const SEEN = `({
  width_pixels: innerWidth,
  content_pixels: document.documentElement.scrollWidth,
  title: document.title,
  text: document.body.innerText,
  scripts: document.scripts.length,
  images: document.images.length,
})`;

const browser = spawn('chromium', FLAGS, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
const [toBrowser, fromBrowser] = [browser.stdio[3], browser.stdio[4]];

function giveUp(why) {
  console.error(`${url}: ${why}`);
  browser.kill('SIGKILL');
  process.exit(1);
}

let lastId = 0;
const calls = new Map();
let sessionId;
function call(method, params = {}) {
  const id = ++lastId;
  toBrowser.write(JSON.stringify({ id, method, params, sessionId }) + '\0');
  return new Promise((resolve) => calls.set(id, resolve));
}

const errors = [];
const failed = [];
const EVENTS = {
  'Runtime.consoleAPICalled': ({ type, args }) => {
    if (['error', 'assert', 'warning'].includes(type)) errors.push(args.map(({ value, description }) => value ?? description).join(' '));
  },
  'Runtime.exceptionThrown': ({ exceptionDetails: { text, exception } }) => errors.push(exception?.description ?? text),
  'Log.entryAdded': ({ entry: { level, text } }) => {
    if (level === 'error') errors.push(text);
  },
  'Network.loadingFailed': ({ errorText }) => failed.push(errorText),
  'Network.responseReceived': ({ response: { status, url: of } }) => {
    if (status >= 400) failed.push(`${status} ${of}`);
  },
};

let rest = '';
fromBrowser.setEncoding('utf8');
fromBrowser.on('data', (text) => {
  const messages = (rest + text).split('\0');
  rest = messages.pop();
  for (const { id, method, params, result, error } of messages.map((message) => JSON.parse(message))) {
    if (error) giveUp(error.message);
    else if (id) calls.get(id)?.(result);
    else EVENTS[method]?.(params);
  }
});

const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
({ sessionId } = await call('Target.attachToTarget', { targetId, flatten: true }));
for (const domain of ['Page', 'Network', 'Runtime', 'Log']) await call(`${domain}.enable`);
const metrics = { width: Number(width), height: 900, deviceScaleFactor: 1, mobile: Number(width) < 600 };
await call('Emulation.setDeviceMetricsOverride', metrics);
await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: colours }] });
if (scripts === 'plain') await call('Emulation.setScriptExecutionDisabled', { value: true });
const { errorText } = await call('Page.navigate', { url });
if (errorText) giveUp(errorText);

async function value(expression) {
  const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, returnByValue: true });
  if (exceptionDetails) giveUp(`${expression}: ${exceptionDetails.exception?.description}`);
  return result.value;
}
const end = Date.now() + Number(patience);
while (!(await value(`document.readyState === 'complete' && Boolean(${until})`))) {
  if (Date.now() > end) giveUp(`not so after ${patience} ms: ${until}; ${errors.join('; ')}; ${await value('document.body.innerText')}`);
  await new Promise((resume) => setTimeout(resume, LOOK_EVERY_MS));
}
const page = await value(SEEN);
if (picture) {
  const { data } = await call('Page.captureScreenshot', { captureBeyondViewport: true });
  writeFileSync(picture, Buffer.from(data, 'base64'));
}
console.log(JSON.stringify({ ...page, errors, failed }));
sessionId = undefined;
call('Browser.close');
browser.on('exit', () => process.exit(0));
