// Requests that two readers could understand in two ways, each with another request hidden in it or behind it.
import { host } from '../helpers/router.ts';

export const hidden = `GET /hidden HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

export const post = (headers: string, body: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n${body}`;
const get = (headers: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`;

export const refused: Record<string, string> = {
  'Content-Length and Transfer-Encoding': post(
    'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n',
    `0\r\n\r\n${hidden}`,
  ),
  'Transfer-Encoding and Content-Length': post(
    `Transfer-Encoding: chunked\r\nContent-Length: ${hidden.length + 5}\r\n`,
    `0\r\n\r\n${hidden}`,
  ),
  'two different lengths': post(`Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n`, hidden),
  'two lengths in one line': post(`Content-Length: 0, ${hidden.length}\r\n`, hidden),
  'a length with a sign': post(`Content-Length: +${hidden.length}\r\n`, hidden),
  'a negative length': post('Content-Length: -1\r\n', hidden),
  'a length in hexadecimal': post('Content-Length: 0x10\r\n', hidden),
  'a length that overflows': post('Content-Length: 18446744073709551616\r\n', hidden),
  'an empty length': post('Content-Length: \r\n', hidden),
  'a folded line': get(`X-A: b\r\n Transfer-Encoding: chunked\r\n`) + hidden,
  'a folded Transfer-Encoding': post('Transfer-Encoding:\r\n chunked\r\n', `0\r\n\r\n${hidden}`),
  'a space before the colon': post(`Content-Length : ${hidden.length}\r\n`, hidden),
  'a tab before the colon': post('Transfer-Encoding\t: chunked\r\n', `0\r\n\r\n${hidden}`),
  'a space before the name': get(` Content-Length: 5\r\n`) + hidden,
  'a bare line feed within the head': get('X-A: b\nContent-Length: 5\r\n') + hidden,
  'a bare carriage return': get('X-A: b\rContent-Length: 5\r\n') + hidden,
  'a NUL in a value': get('X-A: b\0c\r\n') + hidden,
  'a name with a character that is none of a token': get('X(A): b\r\n') + hidden,
  'a line without colon': get('Content-Length\r\n') + hidden,
  'another encoding than chunked': post('Transfer-Encoding: identity\r\n', hidden),
  'chunked twice': post('Transfer-Encoding: chunked, chunked\r\n', `0\r\n\r\n${hidden}`),
  'chunked in two lines': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', `0\r\n\r\n${hidden}`),
  'chunked that is not last': post('Transfer-Encoding: chunked, gzip\r\n', `0\r\n\r\n${hidden}`),
  'gzip and chunked': post('Transfer-Encoding: gzip, chunked\r\n', `0\r\n\r\n${hidden}`),
  'chunked with a vertical tab': post('Transfer-Encoding: \x0bchunked\r\n', `0\r\n\r\n${hidden}`),
  'quoted chunked': post('Transfer-Encoding: "chunked"\r\n', `0\r\n\r\n${hidden}`),
  'chunked of HTTP/1.0': post('Transfer-Encoding: chunked\r\n', `0\r\n\r\n${hidden}`).replace('HTTP/1.1', 'HTTP/1.0'),
  'two hosts': get('Host: other.example\r\n') + hidden,
  'no host': `GET / HTTP/1.1\r\n\r\n${hidden}`,
  'a host with a path': `GET / HTTP/1.1\r\nHost: ${host}/x\r\n\r\n${hidden}`,
  'a host with a user': `GET / HTTP/1.1\r\nHost: ${host}:80@evil.example\r\n\r\n${hidden}`,
  'an absolute target of another host': `GET http://other.example/ HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'an absolute target with a user': `GET http://a@${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'a target of another scheme': `GET ftp://${host}/ HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'a target that is no path': `OPTIONS * HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  'a version that there is not': `GET / HTTP/1.2\r\nHost: ${host}\r\n\r\n${hidden}`,
  'an expectation that there is not': get('Expect: 200-maybe\r\n') + hidden,
  TRACE: `TRACE / HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
  CONNECT: `CONNECT ${host}:80 HTTP/1.1\r\nHost: ${host}\r\n\r\n${hidden}`,
};

/** Bodies that turn out bad after the head was passed on: the request may have begun at the instance. */
export const brokenBodies: Record<string, string> = {
  'a chunk size that is none': `zz\r\n${hidden}`,
  'a negative chunk size': `-1\r\n${hidden}`,
  'a chunk size with 0x': `0x5\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk size with a space before': ` 5\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk size that overflows': `10000000000000005\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk that is longer than it says': `3\r\nhello\r\n0\r\n\r\n${hidden}`,
  'a chunk that ends in a bare line feed': `5\r\nhello\n0\r\n\r\n${hidden}`,
  'a chunk size that ends in a bare line feed': `5\nhello\r\n0\r\n\r\n${hidden}`,
  'a length among the trailers': `5\r\nhello\r\n0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  'a chunk extension with a line feed': `5;a\nb\r\nhello\r\n0\r\n\r\n${hidden}`,
};

export const bareLineFeeds = `GET / HTTP/1.1\nHost: ${host}\n\n${hidden}`;

/** What HAProxy writes anew without the ambiguity, as the last request of its connection. */
export const repairedByHaproxy = new Set([
  'Content-Length and Transfer-Encoding',
  'Transfer-Encoding and Content-Length',
  'a folded line',
  'a folded Transfer-Encoding',
  'a bare line feed within the head',
  'a chunk that ends in a bare line feed',
  'a chunk size that ends in a bare line feed',
  'a length among the trailers',
]);
