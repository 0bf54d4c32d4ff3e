#!/bin/sh
# with-node.sh start.js: what service managers run. It becomes the Node.js that came with the install, wherever npm has put
# that, or the machine's own.
bin=$(dirname "$(readlink -f "$0")")
script=$1
shift
for node in "$bin"/../node_modules/node-linux-*/bin/node "$bin"/../../node-linux-*/bin/node; do
  [ -x "$node" ] && exec "$node" "$bin/$script" "$@"
done
exec node "$bin/$script" "$@"
