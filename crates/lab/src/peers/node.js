// A file server as one is written for Node: the standard library, one process, files as streams.
//
// node node.js HOST PORT ROOT LOG BACKLOG KEEP_ALIVE CHUNKED [TLS_PORT CERTIFICATE KEY]
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const path = require('node:path');
const { pipeline } = require('node:stream');

const [host, port, root, log, backlog, keepAlive, chunked, tlsPort, certificate, key] = process.argv.slice(2);
const types = { '.html': 'text/html', '.css': 'text/css', '.bmp': 'image/bmp' };
const accessLog = fs.createWriteStream(log, { flags: 'a' });

function fail(response, status) {
  response.writeHead(status, { 'Content-Length': 0 });
  response.end();
}

function answer(request, response) {
  let name;
  try {
    name = decodeURIComponent(new URL(request.url, 'http://host').pathname);
  } catch {
    return fail(response, 400);
  }
  // Of an absolute path, normalize() leaves no `..` at its beginning.
  const file = path.join(root, path.normalize(name));
  fs.stat(file, (error, stat) => {
    if (error || !stat.isFile()) return fail(response, 404);
    accessLog.write(`${new Date().toISOString()} ${request.socket.remoteAddress} ${request.method} ${name} ${stat.size}\n`);
    response.writeHead(200, {
      ...(chunked === 'true' ? {} : { 'Content-Length': stat.size }),
      'Content-Type': types[path.extname(file)] || 'application/octet-stream',
      ...(keepAlive === 'true' ? {} : { Connection: 'close' }),
    });
    if (request.method === 'HEAD') return response.end();
    pipeline(fs.createReadStream(file), response, () => {});
  });
}

function listen(server, port) {
  server.keepAliveTimeout = 65000;
  server.requestTimeout = 0;
  server.listen({ host, port: Number(port), backlog: Number(backlog) });
}

listen(http.createServer(answer), port);
if (tlsPort) {
  const options = { cert: fs.readFileSync(certificate), key: fs.readFileSync(key) };
  listen(https.createServer(options, answer), tlsPort);
}
