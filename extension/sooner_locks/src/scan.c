/*
 * scan.c: one look of the worker at all who have a priority.
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "sooner_locks.h"
#include "utils/memutils.h"

/* Passes over what was found before a chain of holders is left as it is. */
#define INHERIT_PASSES_MAX 8

/* A lock that is looked at in this scan. */
typedef struct Noted
{
	LockSeen	seen;
	bool		is_news;		/* its waiters' priorities changed since it was followed */
} Noted;

static Noted *noted = NULL;
static int	noted_count = 0;
static int	noted_max = 0;

/* Finds what is noted: places in `noted` + 1, by the lock's address. */
static int *table = NULL;
static uint32 table_mask = 0;

void
scan_allocate(int slot_count)
{
	uint32		size = 64;

	while (size < (uint32) slot_count * 2)
		size *= 2;
	noted_max = slot_count;
	noted = MemoryContextAllocZero(TopMemoryContext, sizeof(Noted) * slot_count);
	table = MemoryContextAllocZero(TopMemoryContext, sizeof(int) * size);
	table_mask = size - 1;
}

static uint32
table_place(const LOCK *lock)
{
	uint32		place = (uint32) (((uintptr_t) lock >> 4) * 2654435761u) & table_mask;

	while (table[place] != 0 && noted[table[place] - 1].seen.lock != lock)
		place = (place + 1) & table_mask;
	return place;
}

/* Whether the queue of such a lock gets an order. */
static bool
is_ordered_type(const LOCKTAG *tag)
{
	return (setting_types >> tag->locktag_type & 1) != 0;
}

/* Notes what a process waits for, once a scan. */
static void
note(PGPROC *proc)
{
	LockSeen	seen;
	uint32		place;

	if (!lock_see(proc, &seen))
		return;
	if (!setting_inherit && !is_ordered_type(&seen.tag))
		return;
	place = table_place(seen.lock);
	if (table[place] == 0)
	{
		if (noted_count == noted_max)
			return;
		noted[noted_count].seen = seen;
		table[place] = ++noted_count;
	}
	noted[table[place] - 1].is_news = true;
}

static void
forget_noted(void)
{
	if (noted_count > 0)
		memset(table, 0, sizeof(int) * (table_mask + 1));
	noted_count = 0;
}

/* Follows holders that wait themselves, until nothing changes. */
static void
follow_holders(void)
{
	bool		is_done = false;

	for (int pass = 0; pass < INHERIT_PASSES_MAX && !is_done; pass++)
	{
		is_done = true;
		/* Grows meanwhile: a chain is mostly followed in one pass. */
		for (int i = 0; i < noted_count; i++)
		{
			if (!noted[i].is_news)
				continue;
			noted[i].is_news = false;
			is_done = false;
			inherit_from(&noted[i].seen, note);
		}
	}
}

/* Whether any session has a priority, and whether two wait that differ: else there is nothing to order. */
static ScanFound
look_at_all(void)
{
	ScanFound	found = FOUND_NO_PRIORITY;
	int			best = PRIORITY_LAST;
	int			worst = 0;

	for (int slot = 0; slot < shared->slot_count; slot++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[slot];
		int			rank = priority_if_any(slot, proc);

		if (rank != PRIORITY_NONE)
			found = FOUND_PRIORITY;
		else
			rank = PRIORITY_MIDDLE;
		if (*(LOCK *volatile *) &proc->waitLock == NULL)
			continue;
		best = Min(best, rank);
		worst = Max(worst, rank);
	}
	return found == FOUND_PRIORITY && best < worst ? FOUND_WAITER : found;
}

static void
note_waiters(void)
{
	for (int slot = 0; slot < shared->slot_count; slot++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[slot];

		if (priority_if_any(slot, proc) == PRIORITY_NONE ||
			*(LOCK *volatile *) &proc->waitLock == NULL)
			continue;
		stat_add(STAT_CANDIDATES, 1);
		note(proc);
	}
}

/* Looks at everyone, and orders the queues of those who wait. */
ScanFound
scan_all(void)
{
	ScanFound	found;
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	forget_noted();
	inherit_begin();
	found = look_at_all();
	if (found == FOUND_WAITER)
		note_waiters();
	if (setting_inherit)
		follow_holders();
	inherit_end();
	for (int i = 0; i < noted_count; i++)
		if (is_ordered_type(&noted[i].seen.tag))
			queue_order(&noted[i].seen);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	stat_add(STAT_SCANS, 1);
	stat_add(STAT_SCAN_NS, (uint64) (INSTR_TIME_GET_DOUBLE(end) * 1e9));
	return found;
}
