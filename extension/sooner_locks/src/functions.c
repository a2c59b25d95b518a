/*
 * functions.c: what SQL sees and sets.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/twophase.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "sooner_locks.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sooner_slot);
PG_FUNCTION_INFO_V1(sooner_set_priority);
PG_FUNCTION_INFO_V1(sooner_backends);
PG_FUNCTION_INFO_V1(sooner_holders);
PG_FUNCTION_INFO_V1(sooner_lock_stats);
PG_FUNCTION_INFO_V1(sooner_lock_stats_reset);

/* sooner_slot(): this session's place in the map. */
Datum
sooner_slot(PG_FUNCTION_ARGS)
{
	require_loaded();
	PG_RETURN_INT32(process_number(MyProc));
}

/* sooner_set_priority(pid, priority): false where there is no such backend. */
Datum
sooner_set_priority(PG_FUNCTION_ARGS)
{
	int			pid = PG_GETARG_INT32(0);
	int			priority = PG_GETARG_INT32(1);
	PGPROC	   *proc;

	require_loaded();
	if (priority < PRIORITY_NONE || priority > PRIORITY_LAST)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there are priorities 1 to 200, and 1 goes first; 0 is none")));
	proc = pid > 0 ? BackendPidGetProc(pid) : NULL;
	if (proc == NULL)
		PG_RETURN_BOOL(false);
	priority_set(proc, pid, priority);
	PG_RETURN_BOOL(true);
}

/* sooner_backends(): all processes that can have a priority. */
Datum
sooner_backends(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"none", "map", "setting", "function"};
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	require_loaded();
	InitMaterializedSRF(fcinfo, 0);
	for (int slot = 0; slot < shared->slot_count; slot++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[slot];
		int			pid = process_pid(proc);
		uint64		since = pg_atomic_read_u64(&proc->waitStart);
		PrioritySource source;
		int			priority = priority_in_slot(slot, pid, &source);
		int			inherited = inherited_in_slot(slot, pid);
		Datum		values[6];
		bool		nulls[6] = {false};

		if (pid <= 0)
			continue;
		values[0] = Int32GetDatum(pid);
		values[1] = Int32GetDatum(slot);
		values[2] = Int32GetDatum(priority);
		values[3] = CStringGetTextDatum(names[source]);
		values[4] = Int32GetDatum(inherited);
		values[5] = TimestampTzGetDatum((TimestampTz) since);
		nulls[2] = priority == PRIORITY_NONE;
		nulls[4] = inherited == PRIORITY_NONE;
		nulls[5] = since == 0 || *(LOCK *volatile *) &proc->waitLock == NULL;
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* One who holds what is waited for. */
typedef struct Holder
{
	int			pid;			/* 0 is a prepared transaction */
	bool		waits;
} Holder;

/* Those whose held modes conflict with what a process waits for; its own group never does. */
static int
find_holders(const LockSeen *seen, Holder *holders, int holders_max)
{
	PGPROC	   *proc = seen->proc;
	PGPROC	   *group = proc->waitProcLock->groupLeader;
	int			wanted = GetLocksMethodTable(seen->lock)->conflictTab[proc->waitLockMode];
	int			count = 0;

	for (PROCLOCK *held = proclock_first(seen->lock); held != NULL;
		 held = proclock_next(seen->lock, held))
	{
		PGPROC	   *holder = held->tag.myProc;

		if ((held->holdMask & wanted) == 0 || held->groupLeader == group || count == holders_max)
			continue;
		holders[count].pid = holder->pid;
		holders[count].waits = *(LOCK *volatile *) &holder->waitLock != NULL;
		count++;
	}
	return count;
}

/* sooner_holders(pid): one partition lock, shared, instead of all of them. */
Datum
sooner_holders(PG_FUNCTION_ARGS)
{
	int			pid = PG_GETARG_INT32(0);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			holders_max;
	Holder	   *holders;
	PGPROC	   *proc;
	LockSeen	seen;
	int			count;

	require_loaded();
	InitMaterializedSRF(fcinfo, 0);
	proc = pid > 0 ? BackendPidGetProc(pid) : NULL;
	if (proc == NULL || !lock_see(proc, &seen))
		return (Datum) 0;
	holders_max = shared->slot_count + max_prepared_xacts;
	holders = palloc(sizeof(Holder) * holders_max);
	if (!lock_acquire(&seen, LW_SHARED))
		return (Datum) 0;
	count = find_holders(&seen, holders, holders_max);
	LWLockRelease(seen.partition);
	for (int i = 0; i < count; i++)
	{
		Datum		values[3];
		bool		nulls[3] = {false};

		values[0] = Int32GetDatum(holders[i].pid);
		values[1] = BoolGetDatum(holders[i].waits);
		values[2] = CStringGetTextDatum(LockTagTypeNames[seen.tag.locktag_type]);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* sooner_lock_stats(): what the worker counted. */
Datum
sooner_lock_stats(PG_FUNCTION_ARGS)
{
	TupleDesc	described;
	Datum		values[STAT_COUNT];
	bool		nulls[STAT_COUNT] = {false};

	require_loaded();
	if (get_call_result_type(fcinfo, NULL, &described) != TYPEFUNC_COMPOSITE ||
		described->natts != STAT_COUNT)
		elog(ERROR, "sooner_lock_stats() is not that of this library; run ALTER EXTENSION UPDATE");
	for (int i = 0; i < STAT_COUNT; i++)
		values[i] = Int64GetDatum((int64) pg_atomic_read_u64(&shared->stats[i]));
	described = BlessTupleDesc(described);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(described, values, nulls)));
}

/* sooner_lock_stats_reset(): all of it. */
Datum
sooner_lock_stats_reset(PG_FUNCTION_ARGS)
{
	require_loaded();
	for (int i = 0; i < STAT_COUNT; i++)
		pg_atomic_write_u64(&shared->stats[i], 0);
	PG_RETURN_VOID();
}
