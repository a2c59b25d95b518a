// Files of so many bytes over TLS, in HTTP/1.1 and HTTP/2:
// node server.js ADDRESS PORT CERTIFICATE KEY
'use strict';
const fs = require('fs');
const http2 = require('http2');
const [address, port, certificate, key] = process.argv.slice(2);
const SIZES = { '/small': 1000, '/large': 200000, '/streamed': 200000, '/ahead': 200000 };

// Less than the link takes, so that it never stands in the socket.
function trickle(response, times) {
  if (times === 0) return response.end();
  response.write(Buffer.alloc(4096, '#'));
  setTimeout(trickle, 10, response, times - 1);
}

function answer(request, response) {
  if (request.url === '/trickle') {
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    trickle(response, 100);
    return;
  }
  const bytes = SIZES[request.url];
  if (bytes === undefined) {
    response.writeHead(404, { 'content-length': 0 });
    response.end();
    return;
  }
  const headers = { 'content-type': 'application/octet-stream' };
  if (request.url !== '/streamed') headers['content-length'] = bytes;
  response.writeHead(200, headers);
  if (request.url === '/ahead') {
    response.flushHeaders();
    setTimeout(() => response.end(Buffer.alloc(bytes, '#')), 20);
    return;
  }
  response.end(request.method === 'HEAD' ? undefined : Buffer.alloc(bytes, '#'));
}

const options = {
  allowHTTP1: true,
  cert: fs.readFileSync(certificate),
  key: fs.readFileSync(key),
};
const server = http2.createSecureServer(options, answer);
// As https does: else the first answer waits for an acknowledgement, and leaves without its thread.
server.on('connection', (socket) => socket.setNoDelay(true));
server.listen(Number(port), address);
