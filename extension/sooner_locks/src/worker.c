/*
 * worker.c: the background worker: when it looks, and how long it sleeps.
 *
 * On an unpatched server no one else can do this: a waiter is asleep, and
 * nothing is called when it begins to wait.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "sooner_locks.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"

/* The longest pause while no process has a priority. */
#define PAUSE_IDLE_MS 1000.0
/* From this pause on, who sets the first priority wakes the worker. */
#define PAUSE_ASLEEP_MS 20.0
/*
 * While some have priorities but no two wait that differ, the pause is this
 * part of the time since two did, and at most so many intervals. On a full
 * processor each look ends the turn of a session before its time, and the
 * next one finds nothing of its own in the caches.
 */
#define QUIET_PAUSE_PART 0.01
#define QUIET_PAUSE_FACTOR 50

/* What the worker knows between two looks. */
typedef struct Pace
{
	ScanFound	found;			/* at the last look */
	double		pause_ms;		/* after it */
	double		quiet_ms;		/* since two waited that differ */
} Pace;

void
worker_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	/* Not on a standby: its startup process waits by rules of its own. */
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "sooner_locks", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "sooner_locks_worker", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "sooner_locks", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "sooner_locks", sizeof(worker.bgw_type));
	RegisterBackgroundWorker(&worker);
}

static void
worker_leave(int code, Datum arg)
{
	shared->worker_latch = NULL;
	pg_atomic_write_u32(&shared->asleep, 0);
	map_header->worker_pid = 0;
	map_header->asleep = 0;
}

/* How long until the next look, after one that found this. */
static void
pace_step(Pace *pace, ScanFound found)
{
	double		interval_ms = setting_scan_interval_ms;
	double		pause_ms = pace->pause_ms;

	if (found == FOUND_PRIORITY && pace->found != FOUND_NO_PRIORITY)
		pace->quiet_ms += pause_ms;
	else
		pace->quiet_ms = 0;
	if (found == FOUND_NO_PRIORITY)
		pace->pause_ms = Min(pause_ms * 2, PAUSE_IDLE_MS);
	else
		pace->pause_ms = Min(Max(interval_ms, pace->quiet_ms * QUIET_PAUSE_PART),
							 interval_ms * QUIET_PAUSE_FACTOR);
	pace->found = found;
}

/* Sleeps. The latch counts whole milliseconds, so what is shorter is slept first. */
static void
nap(double pause_ms)
{
	long		whole_ms = (long) pause_ms;
	int			events = WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH;

	if (pause_ms < PAUSE_ASLEEP_MS && pause_ms > (double) whole_ms)
		pg_usleep((long) ((pause_ms - (double) whole_ms) * 1000));
	(void) WaitLatch(MyLatch, events, whole_ms, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/* A process that sets a priority from now on wakes the worker, or its next look sees it. */
static void
announce_sleep(bool is_asleep)
{
	pg_atomic_write_u32(&shared->asleep, is_asleep);
	map_header->asleep = is_asleep;
	pg_memory_barrier();
}

/* Looks, and sleeps until the next look. */
static void
look_and_sleep(Pace *pace)
{
	bool		is_long = pace->found == FOUND_NO_PRIORITY && pace->pause_ms >= PAUSE_ASLEEP_MS;
	double		pause_ms;

	if (is_long)
		announce_sleep(true);
	pace_step(pace, scan_all());
	pause_ms = pace->pause_ms;
	/* Without a priority not for long, unless that was said before the look. */
	if (pace->found == FOUND_NO_PRIORITY && !is_long)
		pause_ms = Min(pause_ms, Max(PAUSE_ASLEEP_MS, setting_scan_interval_ms));
	nap(pause_ms);
	if (is_long)
		announce_sleep(false);
}

/* Nothing is ordered: sleeps until the configuration is read anew. */
static void
sleep_while_off(void)
{
	inherit_begin();
	inherit_end();
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

void
sooner_locks_worker(Datum arg)
{
	Pace		pace = {FOUND_NO_PRIORITY, setting_scan_interval_ms, 0};

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	queue_allocate(shared->slot_count);
	inherit_allocate(shared->slot_count);
	scan_allocate(shared->slot_count);
	before_shmem_exit(worker_leave, (Datum) 0);
	shared->worker_latch = MyLatch;
	map_header->worker_pid = MyProcPid;

	while (!ShutdownRequestPending)
	{
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (setting_order)
			look_and_sleep(&pace);
		else
			sleep_while_off();
	}
	/* Not 0: then the postmaster would not start it again. */
	proc_exit(1);
}
