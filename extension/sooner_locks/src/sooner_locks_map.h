/*
 * sooner_locks_map.h: the layout of the file in which another program tells
 * the priorities of backends with one store each.
 *
 * Version 1. The file has a header of 64 bytes and then slot_count slots of 8
 * bytes. All numbers are in the machine's own byte order. Slot i belongs to
 * the backend for which sooner_slot() returns i. A slot is one number of 64
 * bits: the process id in the lower half, the priority in the upper one. It
 * is written with one aligned store (relaxed is enough) and read with one
 * load, so it is never half written:
 *
 *     slot = (uint32) pid | (uint64) priority << 32
 *
 * Priority 1 goes first, 200 last, 0 is none. Any other number counts as
 * none. A slot whose process id is not that of the slot's backend is ignored,
 * and set to 0 by the worker.
 *
 * While `asleep` is 1 the worker looks once a second only. Who writes a
 * priority then may send SIGUSR1 to `worker_pid`; so that none is missed, with
 * a full barrier (a sequentially consistent fence) between its store and its
 * load of `asleep`.
 *
 * The file never shrinks and is never written over: each start of the server
 * makes a new one under the same name, and sets `state` of the one before to
 * 0, or leaves it where it could not. Who keeps the file mapped looks at
 * `state` and at the name's inode when it connects anew. After a crash of a
 * backend the file stays, all slots are 0 and `generation` differs.
 */
#ifndef SOONER_LOCKS_MAP_H
#define SOONER_LOCKS_MAP_H

#include <stdint.h>

#define SOONER_MAP_MAGIC "SOONERLK"
#define SOONER_MAP_VERSION 1
#define SOONER_MAP_HEADER_BYTES 64
#define SOONER_MAP_SLOT_BYTES 8

typedef struct SoonerMapHeader
{
	char		magic[8];		/* 0: SOONER_MAP_MAGIC, no zero at the end */
	uint32_t	version;		/* 8 */
	uint32_t	header_bytes;	/* 12: where the slots begin */
	uint32_t	slot_count;		/* 16 */
	uint32_t	slot_bytes;		/* 20 */
	int32_t		postmaster_pid; /* 24 */
	int32_t		worker_pid;		/* 28: 0 while there is none */
	uint64_t	generation;		/* 32: another one after each start and crash */
	uint32_t	state;			/* 40: 1 in use, 0 the server is gone */
	uint32_t	asleep;			/* 44: 1 while the worker sleeps for long */
	uint8_t		reserved[16];	/* 48: zero */
} SoonerMapHeader;

_Static_assert(sizeof(SoonerMapHeader) == SOONER_MAP_HEADER_BYTES, "a header has 64 bytes");

/* A slot's value. */
static inline uint64_t
sooner_map_slot(int32_t pid, uint32_t priority)
{
	return (uint64_t) (uint32_t) pid | (uint64_t) priority << 32;
}

#endif
