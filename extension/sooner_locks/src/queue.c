/*
 * queue.c: one wait queue of the server, under its one partition lock.
 *
 * Between LWLockAcquire() and LWLockRelease() nothing is allocated and nothing
 * is reported; LWLockAcquire() itself holds off interrupts.
 */
#include "postgres.h"

#include "portability/instr_time.h"
#include "sooner_locks.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static PGPROC **processes = NULL;
static Waiter *waiters = NULL;
static uint32 *ahead = NULL;
static int	waiters_max = 0;

/* What a look at a queue found. */
typedef enum Look
{
	LOOK_IN_ORDER,
	LOOK_GROUP,
	LOOK_TO_ORDER
} Look;

/* Room for all that can wait, once and for all. */
void
queue_allocate(int slot_count)
{
	MemoryContext context = TopMemoryContext;

	waiters_max = slot_count;
	processes = MemoryContextAllocZero(context, sizeof(PGPROC *) * slot_count);
	waiters = MemoryContextAllocZero(context, sizeof(Waiter) * slot_count);
	ahead = MemoryContextAllocZero(context, sizeof(uint32) * slot_count);
}

/*
 * What a process waits for, without any lock. All of it may be old, or of two
 * locks: lock_acquire() finds out. The lock table is never unmapped.
 */
bool
lock_see(PGPROC *proc, LockSeen *seen)
{
	LOCK	   *lock = *(LOCK *volatile *) &proc->waitLock;

	if (lock == NULL)
		return false;
	seen->proc = proc;
	seen->lock = lock;
	memcpy(&seen->tag, &lock->tag, sizeof(LOCKTAG));
	if (seen->tag.locktag_lockmethodid != DEFAULT_LOCKMETHOD &&
		seen->tag.locktag_lockmethodid != USER_LOCKMETHOD)
		return false;
	seen->partition = LockHashPartitionLock(LockTagHashCode(&seen->tag));
	return true;
}

/*
 * Takes the partition lock, and keeps it only if the process still waits for
 * the lock that was seen.
 *
 * While the partition lock is held, no entry of the table comes into or out of
 * the partition. So if the process waits for this entry now, and the entry's
 * tag is one of this partition, then the entry is what it seemed to be. The
 * barrier keeps the two reads in this order: a process that waits for an entry
 * has seen its tag written.
 */
bool
lock_acquire(const LockSeen *seen, LWLockMode mode)
{
	LWLockAcquire(seen->partition, mode);
	if (*(LOCK *volatile *) &seen->proc->waitLock == seen->lock)
	{
		pg_read_barrier();
		if (memcmp(&seen->lock->tag, &seen->tag, sizeof(LOCKTAG)) == 0)
			return true;
	}
	LWLockRelease(seen->partition);
	stat_add(STAT_STALE, 1);
	return false;
}

/*
 * Whether no parallel worker acts with this process.
 *
 * The members are under another partition's lock, but one read tells: the
 * leader is always the first of them, so it is alone where it is the last.
 */
bool
process_is_alone(PGPROC *proc)
{
	PGPROC	   *leader = *(PGPROC *volatile *) &proc->lockGroupLeader;

	if (leader == NULL)
		return true;
	if (leader != proc)
		return false;
	return *(dlist_node *volatile *) &proc->lockGroupMembers.head.prev == &proc->lockGroupLink;
}

/* How far in front a waiter belongs; members of a group as their leader. */
static int
rank_of(PGPROC *proc)
{
	PGPROC	   *leader = *(PGPROC *volatile *) &proc->lockGroupLeader;
	int			slot = process_number(leader == NULL ? proc : leader);
	int			own;
	int			inherited;

	Assert(slot >= 0 && slot < waiters_max);
	own = priority_if_any(slot, leader == NULL ? proc : leader);
	inherited = inherit_rank(slot);
	if (own == PRIORITY_NONE)
		own = PRIORITY_MIDDLE;
	return inherited == PRIORITY_NONE ? own : Min(own, inherited);
}

/* Copies who waits. */
static void
read_waiters(LOCK *lock, WaitQueue *queue, TimestampTz now)
{
	queue->count = queue_length(lock);
	queue_read(lock, processes);
	for (int i = 0; i < queue->count; i++)
	{
		PGPROC	   *proc = processes[i];
		Waiter	   *waiter = &waiters[i];

		waiter->process = proc;
		waiter->since_us = (int64) pg_atomic_read_u64(&proc->waitStart);
		waiter->held = (uint32) proc->waitProcLock->holdMask;
		waiter->mode = (uint8) proc->waitLockMode;
		waiter->rank = (uint8) rank_of(proc);
		waiter->overdue = setting_max_wait_ms > 0 && waiter->since_us != 0 &&
			now - waiter->since_us > (int64) setting_max_wait_ms * 1000;
	}
}

/* Counts the holders; false where one of them, or a waiter, has parallel workers. */
static bool
read_holders(LOCK *lock, WaitQueue *queue)
{
	for (int i = 0; i < queue->count; i++)
		if (!process_is_alone(processes[i]))
			return false;
	for (PROCLOCK *held = proclock_first(lock); held != NULL; held = proclock_next(lock, held))
	{
		if (held->holdMask == 0)
			continue;
		if (!process_is_alone(held->tag.myProc))
			return false;
		order_add_holder(queue, (uint32) held->holdMask);
	}
	return true;
}

/* Looks at a queue; with a verified partition lock of either mode. */
static Look
look_at(LOCK *lock, WaitQueue *queue, TimestampTz now)
{
	queue->waiters = waiters;
	queue->ahead = ahead;
	order_begin(queue, GetLocksMethodTable(lock)->conflictTab);
	if (queue_length(lock) < 2 || queue_length(lock) > waiters_max)
		return LOOK_IN_ORDER;
	read_waiters(lock, queue, now);
	if (order_is_in_order(queue))
		return LOOK_IN_ORDER;
	return read_holders(lock, queue) ? LOOK_TO_ORDER : LOOK_GROUP;
}

/* Writes the order back and wakes those that may go now, as DeadLockCheck() does. */
static int
write_back(LOCK *lock, const WaitQueue *queue)
{
	Assert(queue->count == queue_length(lock));
	queue_clear(lock);
	for (int i = 0; i < queue->count; i++)
		queue_append(lock, (PGPROC *) queue->waiters[i].process);
	Assert(queue->count == queue_length(lock));
	ProcLockWakeup(GetLocksMethodTable(lock), lock);
	return queue->count - queue_length(lock);
}

static void
count_look(Look look, const Ordered *ordered)
{
	if (look == LOOK_GROUP)
		stat_add(STAT_REFUSED_GROUP, 1);
	if (ordered->refused_holding)
		stat_add(STAT_REFUSED_HOLDING, 1);
	if (ordered->refused_unsafe)
		stat_add(STAT_REFUSED_UNSAFE, 1);
}

/* Takes the lock exclusively, orders and writes back. */
static void
order_exclusively(const LockSeen *seen, TimestampTz now)
{
	WaitQueue	queue;
	Ordered		ordered = {0};
	instr_time	start;
	instr_time	end;
	uint64		taken_ns;
	int			woken = 0;

	INSTR_TIME_SET_CURRENT(start);
	if (!lock_acquire(seen, LW_EXCLUSIVE))
		return;
	if (look_at(seen->lock, &queue, now) == LOOK_TO_ORDER)
		ordered = order_queue(&queue);
	if (ordered.moved > 0)
		woken = write_back(seen->lock, &queue);
	LWLockRelease(seen->partition);
	if (ordered.moved == 0)
		return;
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	taken_ns = (uint64) (INSTR_TIME_GET_DOUBLE(end) * 1e9);
	stat_add(STAT_REORDERS, 1);
	stat_add(STAT_MOVED, (uint64) ordered.moved);
	stat_add(STAT_OVERDUE_MOVED, (uint64) ordered.overdue_moved);
	stat_add(STAT_WOKEN, (uint64) woken);
	stat_add(STAT_REORDER_NS, taken_ns);
	stat_max(STAT_REORDER_NS_MAX, taken_ns);
}

/*
 * Orders the queue in which a process was seen to wait.
 *
 * First a look with a shared lock, which is all for a queue that is in order.
 */
void
queue_order(const LockSeen *seen)
{
	TimestampTz now = GetCurrentTimestamp();
	WaitQueue	queue;
	Ordered		ordered = {0};
	Look		look;

	if (!lock_acquire(seen, LW_SHARED))
		return;
	look = look_at(seen->lock, &queue, now);
	if (look == LOOK_TO_ORDER)
		ordered = order_queue(&queue);	/* of the copy */
	LWLockRelease(seen->partition);
	count_look(look, &ordered);
	if (ordered.moved > 0)
		order_exclusively(seen, now);
}
