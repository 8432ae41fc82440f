-- From version 1 to version 2. Tables are locked in the order of commits, so these come to their end.
ALTER TABLE contents ADD COLUMN is_apart boolean NOT NULL DEFAULT false;
ALTER TABLE dropped
    ADD COLUMN is_apart boolean NOT NULL DEFAULT false,
    ADD COLUMN at timestamptz NOT NULL DEFAULT now();
-- Under its new name, no statement of version 1 finds it: the gateway then opens a session anew.
ALTER TABLE outcomes RENAME TO slots;
ALTER TABLE slots
    DROP CONSTRAINT outcomes_pkey,
    ADD COLUMN changes bigint NOT NULL DEFAULT 0,
    ADD PRIMARY KEY (gateway, slot, epoch);
ALTER TABLE store
    ADD COLUMN secret bytea NOT NULL
        DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    ADD COLUMN bodies text,
    ADD COLUMN generation uuid NOT NULL DEFAULT gen_random_uuid(),
    ADD COLUMN turns uuid[] NOT NULL DEFAULT '{}';
DROP INDEX dropped_stamp;
CREATE INDEX dropped_stamp ON dropped (stamp) WHERE NOT is_apart;
CREATE INDEX dropped_apart ON dropped (at) WHERE is_apart;
-- It returns a column more.
DROP FUNCTION commit_;
