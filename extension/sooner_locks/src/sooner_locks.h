/*
 * sooner_locks.h: what the files of this extension share. Include after postgres.h.
 */
#ifndef SOONER_LOCKS_H
#define SOONER_LOCKS_H

#include "compat.h"
#include "order.h"
#include "port/atomics.h"
#include "sooner_locks_map.h"
#include "storage/latch.h"

/* What the worker counts. The order is that of sooner_lock_stats(). */
typedef enum StatIndex
{
	STAT_SCANS,
	STAT_CANDIDATES,
	STAT_REORDERS,
	STAT_MOVED,
	STAT_REFUSED_GROUP,
	STAT_REFUSED_HOLDING,
	STAT_REFUSED_UNSAFE,
	STAT_STALE,
	STAT_WOKEN,
	STAT_OVERDUE_MOVED,
	STAT_INHERITED,
	STAT_REORDER_NS,
	STAT_REORDER_NS_MAX,
	STAT_SCAN_NS,
	STAT_COUNT
} StatIndex;

/* Where a priority comes from. */
typedef enum PrioritySource
{
	SOURCE_NONE,
	SOURCE_MAP,
	SOURCE_SETTING,
	SOURCE_FUNCTION
} PrioritySource;

/* In shared memory: one entry for each place in ProcGlobal->allProcs. */
typedef struct SoonerShared
{
	int			slot_count;
	Latch	   *worker_latch;	/* NULL while there is no worker */
	pg_atomic_uint32 asleep;	/* the worker sleeps for long */
	pg_atomic_uint64 stats[STAT_COUNT];
	pg_atomic_uint64 slots[FLEXIBLE_ARRAY_MEMBER];	/* own, then inherited */
} SoonerShared;

/* PostgreSQL 15 shows all that extensions define to each other. */
#pragma GCC visibility push(hidden)

extern SoonerShared *shared;

/* settings.c */
extern bool setting_order;
extern double setting_scan_interval_ms;
extern bool setting_inherit;
extern int	setting_max_wait_ms;
extern uint32 setting_types;
extern char *setting_map;
extern void settings_define(void);

/* map.c */
extern SoonerMapHeader *map_header;
extern void map_create(int slot_count);
extern uint64 map_read(int slot);
extern void map_forget(int slot, uint64 seen);

/* priority.c */
extern Size shared_bytes(void);
extern void shared_create(void);
extern void require_loaded(void);
extern int	priority_in_slot(int slot, int pid, PrioritySource *source);
extern int	priority_if_any(int slot, PGPROC *proc);
extern bool priority_check_setting(int *priority, void **extra, GucSource source);
extern void priority_assign_setting(int priority, void *extra);
extern void priority_set(PGPROC *proc, int pid, int priority);
extern int	inherited_in_slot(int slot, int pid);
extern void inherited_publish(int slot, int pid, int priority);
extern void worker_wake(void);
extern void stat_add(StatIndex index, uint64 amount);
extern void stat_max(StatIndex index, uint64 amount);

/* queue.c */

/* A lock that a process waits for, as seen without a lock on it. */
typedef struct LockSeen
{
	PGPROC	   *proc;
	LOCK	   *lock;
	LOCKTAG		tag;
	LWLock	   *partition;
} LockSeen;

extern void queue_allocate(int slot_count);
extern bool lock_see(PGPROC *proc, LockSeen *seen);
extern bool lock_acquire(const LockSeen *seen, LWLockMode mode);
extern bool process_is_alone(PGPROC *proc);
extern void queue_order(const LockSeen *seen);

/* inherit.c */
extern void inherit_allocate(int slot_count);
extern void inherit_begin(void);
extern int	inherit_rank(int slot);
extern void inherit_from(const LockSeen *seen, void (*found) (PGPROC *holder));
extern void inherit_end(void);

/* scan.c */
extern void scan_allocate(int slot_count);

/* What a scan found. */
typedef enum ScanFound
{
	FOUND_NO_PRIORITY,
	FOUND_PRIORITY,
	FOUND_WAITER
} ScanFound;

extern ScanFound scan_all(void);

/* worker.c */
extern void worker_register(void);

#pragma GCC visibility pop

extern PGDLLEXPORT void sooner_locks_worker(Datum arg);

#endif
