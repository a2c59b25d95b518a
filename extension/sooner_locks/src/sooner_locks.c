/*
 * sooner_locks.c: what happens when the library is loaded.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "sooner_locks.h"
#include "storage/ipc.h"

PG_MODULE_MAGIC;

static shmem_request_hook_type earlier_request_hook = NULL;
static shmem_startup_hook_type earlier_startup_hook = NULL;

static void
request_shared(void)
{
	if (earlier_request_hook)
		earlier_request_hook();
	RequestAddinShmemSpace(shared_bytes());
}

static void
start_shared(void)
{
	if (earlier_startup_hook)
		earlier_startup_hook();
	shared_create();
}

extern PGDLLEXPORT void _PG_init(void);

/*
 * Without shared_preload_libraries, or without a postmaster, nothing is set up
 * and each function says so.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress || !IsPostmasterEnvironment)
		return;
	settings_define();
	earlier_request_hook = shmem_request_hook;
	shmem_request_hook = request_shared;
	earlier_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_shared;
	worker_register();
}
