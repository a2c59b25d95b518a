-- An older version, brought up to date.
CREATE EXTENSION sooner_locks VERSION '0.9';
ALTER EXTENSION sooner_locks UPDATE TO '1.0';
SELECT extversion FROM pg_extension WHERE extname = 'sooner_locks';
SELECT proname, pg_get_function_result(oid) FROM pg_proc WHERE proname LIKE 'sooner\_%' ORDER BY 1;
-- What is most specific counts.
CREATE VIEW own AS
    SELECT priority, source, inherited, waiting_since FROM sooner_backends
    WHERE pid = pg_backend_pid() AND slot = sooner_slot();
SELECT * FROM own;
SELECT sooner_set_priority(pg_backend_pid(), 70);
SELECT * FROM own;
SET sooner.priority = 60;
SELECT * FROM own;
BEGIN;
SET LOCAL sooner.priority = 50;
SELECT * FROM own;
ROLLBACK;
SELECT * FROM own;
RESET sooner.priority;
SELECT sooner_set_priority(pg_backend_pid(), 0);
SELECT * FROM own;
-- What there is not.
SELECT sooner_set_priority(0, 1);
SELECT sooner_set_priority(pg_backend_pid(), 201);
SET sooner.priority = -1;
SELECT * FROM sooner_holders(pg_backend_pid());
-- Types of locks are checked.
ALTER SYSTEM SET sooner.lock_types = 'tuple, extend';
-- Who may.
CREATE FUNCTION be_patient() RETURNS text LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS
$$ SELECT set_config('sooner.priority', '150', false) $$;
CREATE ROLE regress_sooner;
SET ROLE regress_sooner;
SET sooner.priority = 1;
SELECT sooner_set_priority(1, 1);
SELECT count(*) FROM sooner_backends;
SELECT sooner_slot() >= 0 AS has_slot;
SELECT be_patient();
SHOW sooner.priority;
RESET ROLE;
SELECT * FROM own;
GRANT SET ON PARAMETER sooner.priority TO regress_sooner;
SET ROLE regress_sooner;
SET sooner.priority = 1;
RESET ROLE;
RESET sooner.priority;
REVOKE SET ON PARAMETER sooner.priority FROM regress_sooner;
DROP ROLE regress_sooner;
SELECT sooner_lock_stats_reset();
SELECT moved FROM sooner_lock_stats();
DROP FUNCTION be_patient();
DROP VIEW own;
DROP EXTENSION sooner_locks;
