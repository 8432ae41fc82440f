-- What changes a store, and what reads several records by one call.

CREATE OR REPLACE FUNCTION commit_(
    me integer, run bigint, my_slot integer, my_epoch bigint, my_batch bigint, salt integer,
    locks bigint[], exclusive boolean[],
    p_unit bigint[], p_id bigint[], p_lowest bigint[], p_highest bigint[],
    g_unit bigint[], g_place bytea[], g_version bigint[],
    w_unit bigint[], w_place bytea[], w_version bigint[], w_value bytea[],
    a_unit bigint[], a_id bigint[],
    d_unit bigint[], d_id bigint[], d_stamp bigint[],
    OUT failed bigint[], OUT newest bigint, OUT grown bigint, OUT epoch bigint
) LANGUAGE plpgsql AS $$
DECLARE
    stale bigint[];
    unowned bigint[];
BEGIN
    epoch := my_epoch;
    PERFORM pg_advisory_xact_lock_shared(salt, me);
    IF NOT EXISTS (SELECT FROM gateways WHERE number = me AND incarnation = run) THEN
        RAISE EXCEPTION USING ERRCODE = 'SR003', MESSAGE = 'this gateway was declared dead';
    END IF;
    FOR i IN 1 .. cardinality(locks) LOOP
        IF exclusive[i] THEN
            PERFORM pg_advisory_xact_lock(locks[i]);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(locks[i]);
        END IF;
    END LOOP;
    SELECT array_agg(DISTINCT p.unit), max(o.last) INTO stale, newest
        FROM unnest(p_unit, p_id, p_lowest) AS p(unit, id, lowest)
        JOIN partitions o ON o.id = p.id WHERE o.last >= p.lowest;
    SELECT coalesce(stale, '{}') || coalesce(array_agg(DISTINCT g.unit), '{}') INTO stale
        FROM unnest(g_unit, g_place, g_version) AS g(unit, place, version)
        LEFT JOIN records r ON substr(r.place, 1, 2000) = substr(g.place, 1, 2000)
            AND (CASE WHEN length(r.place) > 2000 THEN sha256(r.place) ELSE ''::bytea END)
                = (CASE WHEN length(g.place) > 2000 THEN sha256(g.place) ELSE ''::bytea END)
            AND r.place = g.place
        WHERE r.version IS DISTINCT FROM g.version;
    SELECT coalesce(array_agg(DISTINCT -a.unit), '{}') INTO unowned
        FROM unnest(a_unit, a_id) AS a(unit, id)
        -- By the primary key: the index of unadopted contents has dead entries for all others.
        LEFT JOIN contents c ON c.id = a.id
        WHERE a.unit <> ALL (stale)
            AND (c.is_adopted OR c.gateway <> me OR c.incarnation <> run) IS NOT FALSE;
    failed := stale || unowned;
    newest := coalesce(newest, 0);
    grown := 0;
    IF cardinality(failed) > 0 THEN
        stale := stale || ARRAY(SELECT -u FROM unnest(unowned) u);
        IF NOT EXISTS (SELECT FROM unnest(p_unit) u WHERE u <> ALL (stale)) THEN
            RETURN;
        END IF;
    END IF;
    INSERT INTO partitions AS o (id, last)
        SELECT p.id, p.highest FROM unnest(p_unit, p_id, p_highest) AS p(unit, id, highest)
        WHERE p.unit <> ALL (stale)
        ON CONFLICT (id) DO UPDATE SET last = EXCLUDED.last;
    SELECT coalesce(sum(w.new_bytes - coalesce(length(r.place) + length(r.value), 0)), 0) INTO grown
        FROM (SELECT place, CASE WHEN value IS NULL THEN 0 ELSE length(place) + length(value) END
              FROM unnest(w_unit, w_place, w_value) AS x(unit, place, value)
              WHERE unit <> ALL (stale)) AS w(place, new_bytes)
        LEFT JOIN records r ON substr(r.place, 1, 2000) = substr(w.place, 1, 2000)
            AND (CASE WHEN length(r.place) > 2000 THEN sha256(r.place) ELSE ''::bytea END)
                = (CASE WHEN length(w.place) > 2000 THEN sha256(w.place) ELSE ''::bytea END)
            AND r.place = w.place;
    DELETE FROM records r USING unnest(w_unit, w_place, w_value) AS w(unit, place, value)
        WHERE w.value IS NULL AND w.unit <> ALL (stale)
            AND substr(r.place, 1, 2000) = substr(w.place, 1, 2000)
            AND (CASE WHEN length(r.place) > 2000 THEN sha256(r.place) ELSE ''::bytea END)
                = (CASE WHEN length(w.place) > 2000 THEN sha256(w.place) ELSE ''::bytea END)
            AND r.place = w.place;
    INSERT INTO records (place, version, value)
        SELECT w.place, w.version, w.value
        FROM unnest(w_unit, w_place, w_version, w_value) AS w(unit, place, version, value)
        WHERE w.value IS NOT NULL AND w.unit <> ALL (stale)
        ON CONFLICT (substr(place, 1, 2000), (CASE WHEN length(place) > 2000 THEN sha256(place) ELSE ''::bytea END))
        DO UPDATE SET version = EXCLUDED.version, value = EXCLUDED.value;
    IF cardinality(a_id) > 0 THEN
        UPDATE contents c SET is_adopted = true
            FROM unnest(a_unit, a_id) AS a(unit, id)
            WHERE c.id = a.id AND a.unit <> ALL (stale);
    END IF;
    IF cardinality(d_id) > 0 THEN
        WITH gone AS (
            DELETE FROM contents c USING unnest(d_unit, d_id, d_stamp) AS d(unit, id, stamp)
                WHERE c.id = d.id AND c.is_adopted AND d.unit <> ALL (stale)
                RETURNING c.id, d.stamp, c.size, c.data IS NULL AS is_long, c.is_apart
        ), kept AS (
            INSERT INTO dropped (id, stamp, size, is_apart)
                SELECT id, stamp, size, is_apart FROM gone WHERE is_long
                ON CONFLICT DO NOTHING
        )
        SELECT grown - coalesce(sum(size), 0) INTO grown FROM gone;
    END IF;
    UPDATE slots o SET batch = my_batch, failed = commit_.failed, bytes = o.bytes + grown,
            highest = greatest(o.highest, (SELECT max(h) FROM unnest(p_highest) h)),
            changes = o.changes + 1, epoch = o.epoch + (o.changes % 64 = 63)::integer
        WHERE o.gateway = me AND o.slot = my_slot AND o.epoch = my_epoch
        RETURNING o.epoch INTO epoch;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'SR004', MESSAGE = 'another session has this slot';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION confirm_(
    me integer, my_slot integer,
    OUT epoch bigint, OUT batch bigint, OUT failed bigint[]
) LANGUAGE plpgsql AS $$
BEGIN
    -- Two sessions must not make the row of a new slot.
    PERFORM pg_advisory_xact_lock(hashtext('strongroom ' || current_schema()), me * 65536 + my_slot);
    SELECT o.epoch INTO epoch FROM slots o WHERE o.gateway = me AND o.slot = my_slot
        ORDER BY o.epoch DESC LIMIT 1 FOR UPDATE;
    IF FOUND THEN
        UPDATE slots o SET epoch = o.epoch + 1
            WHERE o.gateway = me AND o.slot = my_slot AND o.epoch = confirm_.epoch
            RETURNING o.epoch, o.batch, o.failed INTO epoch, batch, failed;
    ELSE
        INSERT INTO slots AS o (gateway, slot, epoch) VALUES (me, my_slot, 1)
            RETURNING o.epoch, o.batch, o.failed INTO epoch, batch, failed;
    END IF;
END $$;

-- Counts what a session has added by another statement than a commit.
CREATE OR REPLACE FUNCTION add_bytes_(me integer, my_slot integer, added bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    SELECT o.epoch INTO newest FROM slots o WHERE o.gateway = me AND o.slot = my_slot
        ORDER BY o.epoch DESC LIMIT 1 FOR UPDATE;
    UPDATE slots o SET bytes = o.bytes + added,
            changes = o.changes + 1, epoch = o.epoch + (o.changes % 64 = 63)::integer
        WHERE o.gateway = me AND o.slot = my_slot AND o.epoch = newest;
END $$;

-- Over all slots, from the last one back: before each one's newest row there are no old versions.
CREATE OR REPLACE FUNCTION totals_(OUT highest bigint, OUT bytes bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    WITH RECURSIVE newest(gateway, slot, highest, bytes) AS (
        (SELECT s.gateway, s.slot, s.highest, s.bytes FROM slots s
            ORDER BY s.gateway DESC, s.slot DESC, s.epoch DESC LIMIT 1)
        UNION ALL
        SELECT o.gateway, o.slot, o.highest, o.bytes FROM newest n CROSS JOIN LATERAL (
            SELECT s.gateway, s.slot, s.highest, s.bytes FROM slots s
            WHERE (s.gateway, s.slot) < (n.gateway, n.slot)
            ORDER BY s.gateway DESC, s.slot DESC, s.epoch DESC LIMIT 1) AS o
    )
    SELECT coalesce(max(n.highest), 0), coalesce(sum(n.bytes), 0) INTO highest, bytes
        FROM newest n;
END $$;

CREATE OR REPLACE FUNCTION change_membership(
    seen bigint, new_body bytea, salt integer, live bigint[], runs bigint[], removed bigint[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- Each commit in flight of a removed gateway is waited for; later ones are refused.
    FOR i IN 1 .. cardinality(removed) LOOP
        PERFORM pg_advisory_xact_lock(salt, removed[i]::integer);
    END LOOP;
    UPDATE membership SET version = seen + 1, body = new_body WHERE version = seen;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    DELETE FROM gateways g WHERE NOT EXISTS (
        SELECT FROM unnest(live, runs) AS l(number, run)
        WHERE l.number = g.number AND l.run = g.incarnation);
    INSERT INTO gateways (number, incarnation)
        SELECT l.number, l.run FROM unnest(live, runs) AS l(number, run)
        ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION scan_(
    first bytea, until bytea, max_records bigint, max_bytes bigint,
    OUT place bytea, OUT version bigint, OUT value bytea
) RETURNS SETOF record LANGUAGE plpgsql STABLE AS $$
DECLARE
    size_bytes bigint := 0;
BEGIN
    -- One row more than asked for, without its value: there the next page begins.
    FOR place, version, value IN
        SELECT r.place, r.version, r.value FROM records r
        WHERE substr(r.place, 1, 2000) >= substr(first, 1, 2000)
            AND r.place >= first
            AND substr(r.place, 1, 2000) <= substr(until, 1, 2000)
            AND r.place < until
        ORDER BY substr(r.place, 1, 2000), r.place LIMIT max_records + 1
    LOOP
        IF size_bytes >= max_bytes OR max_records <= 0 THEN
            value := NULL;
            RETURN NEXT;
            EXIT;
        END IF;
        RETURN NEXT;
        max_records := max_records - 1;
        size_bytes := size_bytes + length(place) + length(value);
    END LOOP;
END $$;

-- As scan_, for records that satisfy a condition, an expression over `value`. It looks at no more
-- than `max_examined` records.
CREATE OR REPLACE FUNCTION scan_where(
    first bytea, until bytea, max_records bigint, max_bytes bigint, max_examined bigint,
    condition text,
    OUT place bytea, OUT version bigint, OUT value bytea
) RETURNS SETOF record LANGUAGE plpgsql STABLE AS $$
DECLARE
    size_bytes bigint := 0;
    examined bigint := 0;
    satisfied boolean;
BEGIN
    FOR place, version, value, satisfied IN EXECUTE
        'SELECT place, version, value, ' || condition || ' FROM records
        WHERE substr(place, 1, 2000) >= substr($1, 1, 2000) AND place >= $1
            AND substr(place, 1, 2000) <= substr($2, 1, 2000) AND place < $2
        ORDER BY substr(place, 1, 2000), place LIMIT $3'
        USING first, until, max_examined + 1
    LOOP
        IF size_bytes >= max_bytes OR max_records <= 0 OR examined >= max_examined THEN
            value := NULL;
            RETURN NEXT;
            EXIT;
        END IF;
        examined := examined + 1;
        CONTINUE WHEN NOT satisfied;
        RETURN NEXT;
        max_records := max_records - 1;
        size_bytes := size_bytes + length(place) + length(value);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION follow_(
    prefix bytea, first bytea, names bytea[], head bytea, tail bytea, id_bytes integer
) RETURNS TABLE (place bytea, version bigint, value bytea) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE chain(at, place, version, value, next) AS (
        SELECT 1, prefix || first || names[1], r.version, r.value,
            CASE WHEN length(r.value) >= length(head) + id_bytes + length(tail)
                    AND substr(r.value, 1, length(head)) = head
                    AND substr(r.value, length(r.value) - length(tail) + 1) = tail
                THEN substr(r.value, length(head) + 1, id_bytes) END
        FROM (SELECT) AS start
        LEFT JOIN records r
            ON substr(r.place, 1, 2000) = substr(prefix || first || names[1], 1, 2000)
            AND (CASE WHEN length(r.place) > 2000 THEN sha256(r.place) ELSE ''::bytea END)
            = (CASE WHEN length(prefix || first || names[1]) > 2000
                THEN sha256(prefix || first || names[1]) ELSE ''::bytea END)
            AND r.place = prefix || first || names[1]
        WHERE cardinality(names) > 0
        UNION ALL
        SELECT c.at + 1, prefix || c.next || names[c.at + 1], r.version, r.value,
            CASE WHEN length(r.value) >= length(head) + id_bytes + length(tail)
                    AND substr(r.value, 1, length(head)) = head
                    AND substr(r.value, length(r.value) - length(tail) + 1) = tail
                THEN substr(r.value, length(head) + 1, id_bytes) END
        FROM chain c
        LEFT JOIN LATERAL (
            SELECT l.version, l.value FROM records l
            WHERE substr(l.place, 1, 2000) = substr(prefix || c.next || names[c.at + 1], 1, 2000)
                AND (CASE WHEN length(l.place) > 2000 THEN sha256(l.place) ELSE ''::bytea END)
                = (CASE WHEN length(prefix || c.next || names[c.at + 1]) > 2000
                THEN sha256(prefix || c.next || names[c.at + 1]) ELSE ''::bytea END)
                AND l.place = prefix || c.next || names[c.at + 1]
        ) AS r ON true
        WHERE c.next IS NOT NULL AND c.at < cardinality(names)
    )
    SELECT place, version, value FROM chain ORDER BY at
$$;

-- Contents that no commit will adopt. Their chunks are deleted by a statement of its own, which sees
-- those that were written until the rows were locked.
CREATE OR REPLACE FUNCTION discard_(ids bigint[], me integer, run bigint, my_slot integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    gone bigint[];
    freed bigint;
BEGIN
    WITH deleted AS (
        DELETE FROM contents WHERE id = ANY (ids) AND NOT is_adopted
            AND gateway = me AND incarnation = run
        RETURNING id, size
    ) SELECT array_agg(id), coalesce(sum(size), 0) INTO gone, freed FROM deleted;
    DELETE FROM chunks WHERE id = ANY (gone);
    PERFORM add_bytes_(me, my_slot, -freed);
END $$;

-- The same for what gateways wrote that are dead, or have begun anew since.
CREATE OR REPLACE FUNCTION remove_orphans(me integer, my_slot integer)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    gone bigint[];
    freed bigint;
BEGIN
    WITH deleted AS (
        DELETE FROM contents c WHERE NOT c.is_adopted AND NOT EXISTS (
            SELECT FROM gateways g
            WHERE g.number = c.gateway AND g.incarnation = c.incarnation)
        RETURNING c.id, c.size, c.is_apart
    ), kept AS (
        INSERT INTO dropped (id, stamp, size, is_apart)
            SELECT id, id, size, true FROM deleted WHERE is_apart
            ON CONFLICT DO NOTHING
    ) SELECT array_agg(id), coalesce(sum(size), 0) INTO gone, freed FROM deleted;
    DELETE FROM chunks WHERE id = ANY (gone);
    PERFORM add_bytes_(me, my_slot, -freed);
END $$;
