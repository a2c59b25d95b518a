/*
 * priority.c: which priority a backend has, and the shared memory where it is.
 *
 * The most specific source counts: the map, then the setting, then the
 * function. Each slot also has the process id it was written for, so what a
 * process left behind is never another's.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "sooner_locks.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

SoonerShared *shared = NULL;

/* A slot of shared memory: process id, setting, function's. */
#define SLOT_PID(word) ((int) (uint32) (word))
#define SLOT_SETTING(word) ((int) ((word) >> 32 & 0xff))
#define SLOT_FUNCTION(word) ((int) ((word) >> 40 & 0xff))
#define SLOT(pid, setting, function) \
	((uint64) (uint32) (pid) | (uint64) (setting) << 32 | (uint64) (function) << 40)

static int
slot_count_max(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

Size
shared_bytes(void)
{
	return add_size(offsetof(SoonerShared, slots),
					mul_size(2 * sizeof(pg_atomic_uint64), slot_count_max()));
}

/* In the postmaster, at the start and after a crash. */
void
shared_create(void)
{
	int			slot_count = slot_count_max();
	bool		found;

	/* Prepared transactions have places behind these: they hold but never wait. */
	if (slot_count > (int) ProcGlobal->allProcCount)
		elog(FATAL, "sooner_locks: the server has fewer processes than it said");
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = (SoonerShared *) ShmemInitStruct("sooner_locks", shared_bytes(), &found);
	if (!found)
	{
		shared->slot_count = slot_count;
		shared->worker_latch = NULL;
		pg_atomic_init_u32(&shared->asleep, 0);
		for (int i = 0; i < STAT_COUNT; i++)
			pg_atomic_init_u64(&shared->stats[i], 0);
		for (int i = 0; i < 2 * slot_count; i++)
			pg_atomic_init_u64(&shared->slots[i], 0);
	}
	LWLockRelease(AddinShmemInitLock);
	if (!IsUnderPostmaster)
		map_create(slot_count);
}

/* For functions: without shared_preload_libraries there is nothing to call. */
void
require_loaded(void)
{
	if (shared == NULL || map_header == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sooner_locks is not loaded"),
				 errhint("Add sooner_locks to shared_preload_libraries"
						 " and restart the server.")));
}

static int
valid_priority(uint64 number)
{
	return number <= PRIORITY_LAST ? (int) number : PRIORITY_NONE;
}

/* What this process was given; 0 is none. */
int
priority_in_slot(int slot, int pid, PrioritySource *source)
{
	uint64		mapped = map_read(slot);
	uint64		own = pg_atomic_read_u64(&shared->slots[slot]);

	*source = SOURCE_NONE;
	if (pid <= 0)
		return PRIORITY_NONE;
	if (SLOT_PID(mapped) == pid && valid_priority(mapped >> 32) != PRIORITY_NONE)
	{
		*source = SOURCE_MAP;
		return valid_priority(mapped >> 32);
	}
	if (SLOT_PID(own) != pid)
		return PRIORITY_NONE;
	if (SLOT_SETTING(own) != PRIORITY_NONE)
	{
		*source = SOURCE_SETTING;
		return SLOT_SETTING(own);
	}
	if (SLOT_FUNCTION(own) != PRIORITY_NONE)
		*source = SOURCE_FUNCTION;
	return SLOT_FUNCTION(own);
}

/* For the worker's scan: two loads where there is none; forgets what is stale. */
int
priority_if_any(int slot, PGPROC *proc)
{
	uint64		mapped = map_read(slot);
	uint64		own = pg_atomic_read_u64(&shared->slots[slot]);
	PrioritySource source;
	int			pid;

	if ((mapped | own) == 0)
		return PRIORITY_NONE;
	pid = process_pid(proc);
	if (mapped != 0 && SLOT_PID(mapped) != pid)
		map_forget(slot, mapped);
	if (own != 0 && SLOT_PID(own) != pid)
		pg_atomic_compare_exchange_u64(&shared->slots[slot], &own, 0);
	return priority_in_slot(slot, pid, &source);
}

/* Sets one of the two in a slot of shared memory; the other stays if it is of the same process. */
static void
slot_set(int slot, int pid, int setting, int function)
{
	uint64		seen = pg_atomic_read_u64(&shared->slots[slot]);
	uint64		wanted;

	Assert(slot >= 0 && slot < shared->slot_count);
	do
	{
		bool		is_same = SLOT_PID(seen) == pid;
		int			kept_setting = is_same ? SLOT_SETTING(seen) : PRIORITY_NONE;
		int			kept_function = is_same ? SLOT_FUNCTION(seen) : PRIORITY_NONE;

		if (setting >= 0)
			kept_setting = setting;
		if (function >= 0)
			kept_function = function;
		wanted = SLOT(pid, kept_setting, kept_function);
		if (kept_setting == PRIORITY_NONE && kept_function == PRIORITY_NONE)
			wanted = 0;
	} while (!pg_atomic_compare_exchange_u64(&shared->slots[slot], &seen, wanted));
	if (wanted != 0)
		worker_wake();
}

/*
 * A value of postgresql.conf, of the command line or of ALTER ROLE ALL is for all
 * sessions alike, so no order follows from it. An `extra` that is not NULL marks
 * a value that the assign hook has to ignore.
 */
bool
priority_check_setting(int *priority, void **extra, GucSource source)
{
	if (source > PGC_S_DEFAULT && source <= PGC_S_GLOBAL)
	{
		*extra = setting_extra(1);
		return *extra != NULL;
	}
	return true;
}

/* `SET sooner.priority`, and its end. Also runs at an abort, so it must not fail. */
void
priority_assign_setting(int priority, void *extra)
{
	int			slot;

	if (shared == NULL || MyProc == NULL)
		return;
	if (extra != NULL)
		priority = PRIORITY_NONE;
	slot = process_number(MyProc);
	if (slot < shared->slot_count)
		slot_set(slot, MyProcPid, priority, -1);
}

/* sooner_set_priority(). The process may be gone meanwhile: then it is stale. */
void
priority_set(PGPROC *proc, int pid, int priority)
{
	Assert(priority >= PRIORITY_NONE && priority <= PRIORITY_LAST);
	if (process_number(proc) < shared->slot_count)
		slot_set(process_number(proc), pid, -1, priority);
}

/* What the worker last found it to inherit; 0 is nothing. */
int
inherited_in_slot(int slot, int pid)
{
	uint64		word = pg_atomic_read_u64(&shared->slots[shared->slot_count + slot]);

	return pid > 0 && SLOT_PID(word) == pid ? (int) (word >> 32) : PRIORITY_NONE;
}

/* For sooner_backends; only the worker writes it. */
void
inherited_publish(int slot, int pid, int priority)
{
	pg_atomic_write_u64(&shared->slots[shared->slot_count + slot],
						priority == PRIORITY_NONE ? 0 : sooner_map_slot(pid, priority));
}

/* Ends the worker's long sleep. The store before it is a full barrier. */
void
worker_wake(void)
{
	Latch	   *latch = *(Latch *volatile *) &shared->worker_latch;

	if (latch != NULL && pg_atomic_read_u32(&shared->asleep) != 0)
		SetLatch(latch);
}

void
stat_add(StatIndex index, uint64 amount)
{
	pg_atomic_fetch_add_u64(&shared->stats[index], (int64) amount);
}

void
stat_max(StatIndex index, uint64 amount)
{
	if (pg_atomic_read_u64(&shared->stats[index]) < amount)
		pg_atomic_write_u64(&shared->stats[index], amount);
}
