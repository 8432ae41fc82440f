#!/bin/sh
# Follows the primary; copies its data at the first start.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  source="host=$PRIMARY user=replicator application_name=db2"
  until pg_basebackup --dbname "$source" --pgdata "$PGDATA" --write-recovery-conf --checkpoint fast; do
    rm -rf "${PGDATA:?}"/*
    sleep 1
  done
  chmod 0700 "$PGDATA"
fi
exec postgres "$@"
