\echo Use "CREATE EXTENSION sooner_locks" to load this file. \quit

CREATE FUNCTION sooner_slot() RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED;

-- Fails at once, with a hint, where the library is not preloaded.
SELECT sooner_slot();

CREATE FUNCTION sooner_set_priority(pid int, priority int) RETURNS boolean
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE FUNCTION sooner_lock_stats_reset() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION sooner_set_priority(int, int) FROM PUBLIC;
REVOKE ALL ON FUNCTION sooner_lock_stats_reset() FROM PUBLIC;

CREATE FUNCTION sooner_backends(
    OUT pid int, OUT slot int, OUT priority int, OUT source text, OUT inherited int,
    OUT waiting_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;

CREATE VIEW sooner_backends AS SELECT * FROM sooner_backends();

CREATE FUNCTION sooner_holders(
    pid int, OUT holder int, OUT waits boolean, OUT lock_type text)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;

CREATE FUNCTION sooner_lock_stats(
    OUT scans bigint, OUT candidates bigint, OUT reorders bigint, OUT moved bigint,
    OUT refused_group bigint, OUT refused_holding bigint, OUT refused_unsafe bigint,
    OUT stale bigint, OUT woken bigint, OUT overdue_moved bigint, OUT inherited bigint,
    OUT reorder_ns bigint, OUT reorder_ns_max bigint, OUT scan_ns bigint)
RETURNS record
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE PARALLEL SAFE;

-- Who may see all of pg_stat_activity may see these.
REVOKE ALL ON FUNCTION sooner_backends() FROM PUBLIC;
REVOKE ALL ON FUNCTION sooner_holders(int) FROM PUBLIC;
REVOKE ALL ON FUNCTION sooner_lock_stats() FROM PUBLIC;
REVOKE ALL ON sooner_backends FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sooner_backends() TO pg_monitor;
GRANT EXECUTE ON FUNCTION sooner_holders(int) TO pg_monitor;
GRANT EXECUTE ON FUNCTION sooner_lock_stats() TO pg_monitor;
GRANT SELECT ON sooner_backends TO pg_monitor;
