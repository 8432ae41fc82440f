#!/bin/sh
# What the image of PostgreSQL runs once, on the new data of the primary.
set -eu
psql --username postgres --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
CREATE ROLE strongroom LOGIN PASSWORD :'password';
CREATE DATABASE strongroom OWNER strongroom ENCODING 'UTF8' TEMPLATE template0;
-- The last statement: from the next start on, commits wait for the standby.
ALTER SYSTEM SET synchronous_standby_names = 'db2';
SQL
echo "host replication replicator all scram-sha-256" >>"$PGDATA/pg_hba.conf"
