-- The tables of a store. An index holds at most 2,704 bytes of a row, so that of `records` has the
-- first 2,000 bytes of a place, and the digest of a longer one.

CREATE TABLE IF NOT EXISTS store (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    version integer NOT NULL,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    salt bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()),
    allows_reset boolean NOT NULL DEFAULT false,
    test_clock boolean NOT NULL DEFAULT false,
    shift bigint NOT NULL DEFAULT 0,
    -- The source, while a copy into this store is not complete.
    transfer text,
    foreign_etags boolean NOT NULL DEFAULT false,
    -- What all gateways know, and nobody else.
    secret bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    -- The folder or pool of bodies that lie apart; NULL = there are none. The generation changes when
    -- another database takes it over.
    bodies text,
    generation uuid NOT NULL DEFAULT gen_random_uuid(),
    -- The last turns, the newest first: engines/bodies/mark.py.
    turns uuid[] NOT NULL DEFAULT '{}'
);
-- Keys of both classes with their values; sql/places.py has the form of a place.
CREATE TABLE IF NOT EXISTS records (
    place bytea NOT NULL,
    version bigint NOT NULL,
    value bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE records ALTER COLUMN value SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX IF NOT EXISTS records_place ON records (substr(place, 1, 2000), (CASE WHEN length(place) > 2000 THEN sha256(place) ELSE ''::bytea END));
-- The newest stamp of each partition that was written lately. Below the floor of `membership`, no
-- commit can happen any more, and the row is deleted.
CREATE TABLE IF NOT EXISTS partitions (
    id bigint PRIMARY KEY,
    last bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- Bodies. A short one is in `data`, a long one in `chunks`, or apart from the database. Only its
-- writer's commits adopt it.
CREATE TABLE IF NOT EXISTS contents (
    id bigint PRIMARY KEY,
    size bigint NOT NULL,
    crc bigint NOT NULL,
    data bytea,
    gateway integer NOT NULL,
    incarnation bigint NOT NULL,
    is_adopted boolean NOT NULL DEFAULT false,
    is_apart boolean NOT NULL DEFAULT false
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE contents ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS contents_unadopted ON contents (id) WHERE NOT is_adopted;
CREATE TABLE IF NOT EXISTS chunks (
    id bigint NOT NULL,
    at bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (id, at)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE chunks ALTER COLUMN data SET STORAGE EXTERNAL;
-- Bodies in chunks or apart that no record names since a stamp; a reader may still have them open.
-- Those apart stay for some days.
CREATE TABLE IF NOT EXISTS dropped (
    id bigint PRIMARY KEY,
    stamp bigint NOT NULL,
    size bigint NOT NULL,
    is_apart boolean NOT NULL DEFAULT false,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS dropped_stamp ON dropped (stamp) WHERE NOT is_apart;
CREATE INDEX IF NOT EXISTS dropped_apart ON dropped (at) WHERE is_apart;
-- All gateways and their holds in one value (engines/membership.py), changed by comparing `version`.
CREATE TABLE IF NOT EXISTS membership (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    version bigint NOT NULL,
    body bytea NOT NULL
) WITH (fillfactor = 50);
-- Who is live: each commit checks this.
CREATE TABLE IF NOT EXISTS gateways (
    number integer PRIMARY KEY,
    incarnation bigint NOT NULL
);
-- One row for each session of a gateway, its slot. `batch` and `failed` are of its last commit,
-- `highest` is its greatest stamp, `bytes` what it has added in all. `epoch` goes up with each session
-- that has the slot, and with each 64th change. A row is looked up by its epoch, the newest by the
-- greatest one. So 64 versions at most are passed over, however many an old snapshot keeps.
CREATE TABLE IF NOT EXISTS slots (
    gateway integer NOT NULL,
    slot integer NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    batch bigint NOT NULL DEFAULT 0,
    failed bigint[] NOT NULL DEFAULT '{}',
    highest bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    changes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (gateway, slot, epoch)
) WITH (fillfactor = 50);
