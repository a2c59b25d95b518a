/*
 * inherit.c: who holds what a prioritised backend waits for has its priority,
 * in the queues in which it waits itself.
 *
 * Found anew by each scan, so it ends when the wait ends. It only says in
 * which order queues should be; what is safe is decided as for any other.
 */
#include "postgres.h"

#include "sooner_locks.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"

static uint8 *inherited = NULL;	/* by slot; 0 is nothing */
static bool *was_published = NULL;
static PGPROC **waiting = NULL;
static int	slots_max = 0;
static bool is_any = false;

void
inherit_allocate(int slot_count)
{
	slots_max = slot_count;
	inherited = MemoryContextAllocZero(TopMemoryContext, slot_count);
	was_published = MemoryContextAllocZero(TopMemoryContext, sizeof(bool) * slot_count);
	waiting = MemoryContextAllocZero(TopMemoryContext, sizeof(PGPROC *) * slot_count);
}

/* Forgets what the last scan found. */
void
inherit_begin(void)
{
	if (is_any)
		memset(inherited, 0, slots_max);
}

/* What a slot's process inherits; 0 is nothing. */
int
inherit_rank(int slot)
{
	return inherited[slot];
}

/* The priority a process passes on: its own or an inherited one, 0 where it has neither. */
static int
priority_to_pass_on(PGPROC *proc)
{
	PGPROC	   *leader = *(PGPROC *volatile *) &proc->lockGroupLeader;
	int			slot = process_number(leader == NULL ? proc : leader);
	int			own = priority_if_any(slot, leader == NULL ? proc : leader);

	if (own == PRIORITY_NONE || inherited[slot] == PRIORITY_NONE)
		return Max(own, inherited[slot]);
	return Min(own, inherited[slot]);
}

/* A process holds what one of this priority waits for. Whether that is news. */
static bool
raise_holder(PGPROC *holder, int priority)
{
	PGPROC	   *leader = *(PGPROC *volatile *) &holder->lockGroupLeader;
	int			slot = process_number(leader == NULL ? holder : leader);
	int			own;

	/* A prepared transaction has no slot: it never waits. */
	if (slot < 0 || slot >= slots_max)
		return false;
	own = priority_if_any(slot, leader == NULL ? holder : leader);
	if (own == PRIORITY_NONE)
		own = PRIORITY_MIDDLE;
	if (inherited[slot] != PRIORITY_NONE)
		own = Min(own, inherited[slot]);
	if (priority >= own)
		return false;
	inherited[slot] = (uint8) priority;
	is_any = true;
	return true;
}

/* The best priority among the waiters of each mode. */
static void
best_by_mode(LOCK *lock, int *best)
{
	int			count = queue_length(lock);

	memset(best, 0, sizeof(int) * (ORDER_MODE_MAX + 1));
	if (count > slots_max)
		return;
	queue_read(lock, waiting);
	for (int i = 0; i < count; i++)
	{
		int			mode = waiting[i]->waitLockMode;
		int			priority = priority_to_pass_on(waiting[i]);

		if (priority != PRIORITY_NONE && (best[mode] == 0 || priority < best[mode]))
			best[mode] = priority;
	}
}

/* Raises the holders of a lock; `found` is told those that wait themselves. */
void
inherit_from(const LockSeen *seen, void (*found) (PGPROC *holder))
{
	int			best[ORDER_MODE_MAX + 1];
	const int  *conflicts;

	if (!lock_acquire(seen, LW_SHARED))
		return;
	conflicts = GetLocksMethodTable(seen->lock)->conflictTab;
	best_by_mode(seen->lock, best);
	for (PROCLOCK *held = proclock_first(seen->lock); held != NULL;
		 held = proclock_next(seen->lock, held))
	{
		int			priority = PRIORITY_NONE;

		for (int mode = 1; mode <= ORDER_MODE_MAX; mode++)
			if ((conflicts[mode] & held->holdMask) && best[mode] != 0 &&
				(priority == PRIORITY_NONE || best[mode] < priority))
				priority = best[mode];
		if (priority != PRIORITY_NONE && raise_holder(held->tag.myProc, priority))
			found(held->tag.myProc);
	}
	LWLockRelease(seen->partition);
}

/* Shows in sooner_backends what was found. */
void
inherit_end(void)
{
	bool		still_any = false;

	if (!is_any)
		return;
	for (int slot = 0; slot < slots_max; slot++)
	{
		bool		is_now = inherited[slot] != PRIORITY_NONE;

		if (!is_now && !was_published[slot])
			continue;
		inherited_publish(slot, process_pid(&ProcGlobal->allProcs[slot]), inherited[slot]);
		if (is_now && !was_published[slot])
			stat_add(STAT_INHERITED, 1);
		was_published[slot] = is_now;
		still_any |= is_now;
	}
	is_any = still_any;
}
