import { Type } from 'typebox';
import { declareDelete, declareList, Id, Nullable, none, type Of, Shape, Text, Time } from './declare.ts';

export const Session = Shape(
  {
    id: Id('ses', 'The session.'),
    token_id: Id('tok', 'The token that signed in. The session can do what that token can, for as long as it can.'),
    token_name: Text(100, 'The name of that token.'),
    address: Text(64, 'The address it was started from.'),
    user_agent: Nullable(Text(300, 'The browser, as it calls itself.')),
    current: Type.Boolean({ description: 'Whether this request comes from it.' }),
    created_at: Time('When it was started.'),
    last_used_at: Time('When it last got a short-lived token.'),
    expires_at: Time('When it ends by itself, unless it is used before.'),
  },
  { $id: 'Session' },
);
export type Session = Of<typeof Session>;

export const listSessions = declareList({
  name: 'sessions.list',
  path: '/sessions',
  tag: 'tokens',
  summary: 'List sessions of the console: those of this token, and with `tokens:read` those of every token it may see',
  scope: null,
  params: none,
  item: Session,
});

export const endSession = declareDelete({
  name: 'sessions.end',
  path: '/sessions/{ses}',
  tag: 'tokens',
  summary: 'End a session of this token, or with `tokens:write` of another token with no more rights',
  scope: null,
  params: Shape({ ses: Id('ses', 'The session.') }),
  errors: ['session_not_found'],
  versioned: false, // nothing about a session changes but its end
});
