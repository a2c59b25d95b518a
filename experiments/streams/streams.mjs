// Asks for files at the same moment over HTTP/2, on one connection or several, and prints when each was there:
// node streams.mjs ORIGIN CONNECTIONS PATH... prints a JSON array of milliseconds, in the order of the paths.
import http2 from 'node:http2';

const WINDOW_BYTES = 2 ** 31 - 1;
const [origin, connections, ...paths] = process.argv.slice(2);

function connect() {
  return new Promise((resolve, reject) => {
    const session = http2.connect(origin, {
      rejectUnauthorized: false,
      settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
    });
    session.once('error', reject);
    session.once('remoteSettings', () => {
      session.setLocalWindowSize(WINDOW_BYTES);
      resolve(session);
    });
  });
}

function fetched(session, path, start) {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path });
    let status = 0;
    stream.once('response', (headers) => (status = headers[':status']));
    stream.once('error', reject);
    stream.once('end', () => {
      const ms = performance.now() - start;
      if (status === 200) resolve(ms);
      else reject(new Error(`${path}: status ${status}`));
    });
    stream.resume();
  });
}

const sessions = await Promise.all(Array.from({ length: Number(connections) }, connect));
const start = performance.now();
const all = paths.map((path, nth) => fetched(sessions[nth % sessions.length], path, start));
console.log(JSON.stringify(await Promise.all(all)));
sessions.forEach((session) => session.destroy());
