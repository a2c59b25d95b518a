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
