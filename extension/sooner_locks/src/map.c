/*
 * map.c: the file of sooner_locks_map.h: made at the start, removed at the end.
 *
 * The server reads nothing of it but the slots, and checks what it reads: who
 * can write the file can set priorities, and no more.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "sooner_locks.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

SoonerMapHeader *map_header = NULL;

static pg_atomic_uint64 *map_slots = NULL;
static Size map_bytes = 0;
static char map_path[MAXPGPATH];

/* The postmaster ends: who has it mapped is told, the name goes. */
static void
map_remove(int code, Datum arg)
{
	if (map_header == NULL || MyProcPid != PostmasterPid)
		return;
	map_header->state = 0;
	unlink(map_path);
}

/* Makes the file under another name, so that no reader sees half of it. */
static void
map_make_file(void)
{
	char		fresh[MAXPGPATH + 8];
	void	   *memory;
	int			file;
	int			error;

	snprintf(fresh, sizeof(fresh), "%s.new", map_path);
	if (unlink(fresh) != 0 && errno != ENOENT)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not remove file \"%s\": %m", fresh)));
	file = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file < 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not create file \"%s\": %m", fresh)));
	/* The umask of a server whose group may read does not concern this file. */
	if (fchmod(file, 0600) != 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not set permissions of file \"%s\": %m", fresh)));
	/* Without its blocks a store could find the disk full, and end the storing program. */
	error = posix_fallocate(file, 0, (off_t) map_bytes);
	if (error != 0)
	{
		errno = error;
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not allocate file \"%s\": %m", fresh)));
	}
	memory = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not map file \"%s\": %m", fresh)));
	close(file);
	map_header = (SoonerMapHeader *) memory;
	map_slots = (pg_atomic_uint64 *) ((char *) memory + SOONER_MAP_HEADER_BYTES);
}

/* Says what it is; what was in it is gone. */
static void
map_fill(int slot_count)
{
	memset(map_header, 0, map_bytes);
	memcpy(map_header->magic, SOONER_MAP_MAGIC, sizeof(map_header->magic));
	map_header->version = SOONER_MAP_VERSION;
	map_header->header_bytes = SOONER_MAP_HEADER_BYTES;
	map_header->slot_count = (uint32) slot_count;
	map_header->slot_bytes = SOONER_MAP_SLOT_BYTES;
	map_header->postmaster_pid = PostmasterPid;
	map_header->generation = (uint64) GetCurrentTimestamp();
	pg_write_barrier();
	map_header->state = 1;
}

/* In the postmaster, at the start and after a crash; then the file stays. */
void
map_create(int slot_count)
{
	char		fresh[MAXPGPATH + 8];

	StaticAssertStmt(sizeof(pg_atomic_uint64) == SOONER_MAP_SLOT_BYTES, "a slot has 8 bytes");
	Assert(slot_count > 0 && !IsUnderPostmaster);
	if (map_header != NULL)
	{
		map_fill(slot_count);
		return;
	}
	if (is_absolute_path(setting_map))
		strlcpy(map_path, setting_map, sizeof(map_path));
	else
		snprintf(map_path, sizeof(map_path), "%s/%s", DataDir, setting_map);
	map_bytes = SOONER_MAP_HEADER_BYTES + (Size) slot_count * SOONER_MAP_SLOT_BYTES;
	map_make_file();
	map_fill(slot_count);
	snprintf(fresh, sizeof(fresh), "%s.new", map_path);
	if (rename(fresh, map_path) != 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not rename file \"%s\": %m", fresh)));
	on_proc_exit(map_remove, (Datum) 0);
}

/* One load. */
uint64
map_read(int slot)
{
	Assert(slot >= 0 && slot < shared->slot_count);
	return pg_atomic_read_u64(&map_slots[slot]);
}

/* Empties a slot, unless it was written meanwhile. */
void
map_forget(int slot, uint64 seen)
{
	pg_atomic_compare_exchange_u64(&map_slots[slot], &seen, 0);
}
