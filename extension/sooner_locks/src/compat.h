/*
 * compat.h: what differs between the majors 15 to 18. Include after postgres.h.
 */
#ifndef SOONER_COMPAT_H
#define SOONER_COMPAT_H

#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/guc.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 190000
#error "sooner_locks knows the lock tables of PostgreSQL 15, 16, 17 and 18 only"
#endif
#ifdef WIN32
#error "sooner_locks needs fork() and mmap()"
#endif

/* A process's place in ProcGlobal->allProcs. */
static inline int
process_number(PGPROC *proc)
{
#if PG_VERSION_NUM >= 170000
	return (int) GetNumberFromPGProc(proc);
#else
	return proc->pgprocno;
#endif
}

/*
 * The process id; 0 where the place is free. PostgreSQL 15 and 16 leave `pid`
 * as it was when a process ends, but all give the latch back.
 */
static inline int
process_pid(PGPROC *proc)
{
	return *(volatile int *) &proc->procLatch.owner_pid;
}

/* How many wait for it. */
static inline int
queue_length(LOCK *lock)
{
#if PG_VERSION_NUM >= 160000
	return (int) dclist_count(&lock->waitProcs);
#else
	return lock->waitProcs.size;
#endif
}

/* Reads who waits, front first; there must be room for queue_length(). */
static inline void
queue_read(LOCK *lock, PGPROC **waiters)
{
	int			count = 0;

#if PG_VERSION_NUM >= 160000
	dlist_iter	place;

	dclist_foreach(place, &lock->waitProcs)
		waiters[count++] = dlist_container(PGPROC, links, place.cur);
#else
	PGPROC	   *proc = (PGPROC *) lock->waitProcs.links.next;

	while (count < lock->waitProcs.size)
	{
		waiters[count++] = proc;
		proc = (PGPROC *) proc->links.next;
	}
#endif
	Assert(count == queue_length(lock));
}

/* Empties the queue, before queue_append() puts all back, as DeadLockCheck() does. */
static inline void
queue_clear(LOCK *lock)
{
#if PG_VERSION_NUM >= 160000
	dclist_init(&lock->waitProcs);
#else
	ProcQueueInit(&lock->waitProcs);
#endif
}

static inline void
queue_append(LOCK *lock, PGPROC *proc)
{
#if PG_VERSION_NUM >= 160000
	dclist_push_tail(&lock->waitProcs, &proc->links);
#else
	SHMQueueInsertBefore(&lock->waitProcs.links, &proc->links);
	lock->waitProcs.size++;
#endif
}

/* The first of those who hold or wait for it; NULL where there is none. */
static inline PROCLOCK *
proclock_first(LOCK *lock)
{
#if PG_VERSION_NUM >= 160000
	if (dlist_is_empty(&lock->procLocks))
		return NULL;
	return dlist_head_element(PROCLOCK, lockLink, &lock->procLocks);
#else
	return (PROCLOCK *) SHMQueueNext(&lock->procLocks, &lock->procLocks,
									 offsetof(PROCLOCK, lockLink));
#endif
}

static inline PROCLOCK *
proclock_next(LOCK *lock, PROCLOCK *proclock)
{
#if PG_VERSION_NUM >= 160000
	if (!dlist_has_next(&lock->procLocks, &proclock->lockLink))
		return NULL;
	return dlist_container(PROCLOCK, lockLink,
						   dlist_next_node(&lock->procLocks, &proclock->lockLink));
#else
	return (PROCLOCK *) SHMQueueNext(&lock->procLocks, &proclock->lockLink,
									 offsetof(PROCLOCK, lockLink));
#endif
}

/* Memory for what a check hook hands to its assign hook. */
static inline void *
setting_extra(size_t bytes)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, bytes);
#else
	return malloc(bytes);
#endif
}

#endif
