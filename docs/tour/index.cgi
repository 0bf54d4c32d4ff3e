#!/bin/sh
# Fails as often as the stand-in would.
if awk "BEGIN { srand($$); exit !(rand() < ${STANDIN_ERROR_RATE:-0}) }"; then
  printf 'Status: 500 Failed\r\n\r\nfailed\n'
else
  printf 'Content-Type: application/json\r\n\r\n{"image":"shop:%s","revision":"%s"}\n' "$VERSION" "$DEPLOY_REVISION"
fi
