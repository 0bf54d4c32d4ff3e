import assert from 'node:assert/strict';
import { test } from 'node:test';
import { portsIn } from './listening-ports.ts';

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
const rest = '00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0';
const line = (local: string, state: string) => `   0: ${local} 00000000:0000 ${state} ${rest}`;

test('listening sockets, those on loopback apart, without connections and the resolver of Docker', () => {
  const table = [
    head,
    line('00000000:0BB8', '0A'), // 0.0.0.0:3000
    line('0100007F:1F90', '0A'), // 127.0.0.1:8080
    line('0B00007F:A5B1', '0A'), // 127.0.0.11:42417
    line('0100007F:0016', '01'), // a connection
    head,
    line('00000000000000000000000000000000:0050', '0A'), // [::]:80
    line('00000000000000000000000001000000:1F91', '0A'), // [::1]:8081
    line('0000000000000000FFFF00000100007F:1F92', '0A'), // [::ffff:127.0.0.1]:8082
    line('00000000000000000000000001000000:0BB8', '0A'), // [::1]:3000, which is open as well
    '',
  ].join('\n');
  assert.deepEqual(portsIn(table), { open: [80, 3000], loopback: [8080, 8081, 8082] });
});
