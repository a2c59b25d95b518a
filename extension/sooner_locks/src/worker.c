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
/* From this pause on, who sets a priority wakes the worker. */
#define PAUSE_ASLEEP_MS 20.0
/* While some have priorities but none waits: at most so many intervals, after so many scans. */
#define QUIET_PAUSE_FACTOR 4
#define QUIET_SCANS 100

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

/* How long until the next look. */
static double
next_pause_ms(ScanFound found, double pause_ms, int *quiet_scans)
{
	if (found == FOUND_WAITER)
		*quiet_scans = 0;
	else if (*quiet_scans < QUIET_SCANS)
		(*quiet_scans)++;
	if (found == FOUND_WAITER || *quiet_scans < QUIET_SCANS)
		return setting_scan_interval_ms;
	if (found == FOUND_PRIORITY)
		return setting_scan_interval_ms * QUIET_PAUSE_FACTOR;
	return Min(pause_ms * 2, PAUSE_IDLE_MS);
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

/* Looks, and sleeps until the next look; returns the pause that was right. */
static double
look_and_sleep(double pause_ms, int *quiet_scans)
{
	bool		is_long = pause_ms >= PAUSE_ASLEEP_MS;

	if (is_long)
		announce_sleep(true);
	pause_ms = next_pause_ms(scan_all(), pause_ms, quiet_scans);
	/* Not for long unless that was said before the look. */
	nap(is_long ? pause_ms : Min(pause_ms, Max(PAUSE_ASLEEP_MS, setting_scan_interval_ms)));
	if (is_long)
		announce_sleep(false);
	return pause_ms;
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
	double		pause_ms = setting_scan_interval_ms;
	int			quiet_scans = 0;

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
			pause_ms = look_and_sleep(pause_ms, &quiet_scans);
		else
			sleep_while_off();
	}
	/* Not 0: then the postmaster would not start it again. */
	proc_exit(1);
}
