// node:http without an import of it. An ES module that imports it gets all its exports, WebSocket among them, and so loads
// fetch and all that belongs to it: 15 MiB and a twentieth of a second for each process that does.
const http = process.getBuiltinModule('node:http');

export const { Agent, createServer, get, METHODS, request, ServerResponse, STATUS_CODES } = http;
export type ServerResponse = import('node:http').ServerResponse;
export type Agent = import('node:http').Agent;
