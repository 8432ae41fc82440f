#!/bin/sh
# Whether the server in this container is healthy: one of its ports says so. Ports that are not
# served refuse at once. Set the variables of `strongroom serve` for ports of your own.
for port in "${STRONGROOM_BLOB_PORT:-10000}" "${STRONGROOM_QUEUE_PORT:-10001}" \
  "${STRONGROOM_TABLE_PORT:-10002}" "${STRONGROOM_FILE_PORT:-10003}"; do
  wget -q -T 4 -O /dev/null "http://127.0.0.1:$port/.strongroom/health" && exit 0
done
exit 1
