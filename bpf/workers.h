// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What is known of the workers, and what their reader is told and tells.

#define WORKERS_MAX 4096
#define KINDS_MAX 1024

enum { UNKNOWN, RUNS, READY, ASLEEP, IDLE, GONE };
enum { TOLD_WOKEN, TOLD_RESTS, TOLD_BEGUN, TOLD_FORKED };

/* Of the kernel's structures only these; where they lie is looked up when the programs are loaded. */
struct task_struct {
	int pid;
	int tgid;
	unsigned int __state;
} __attribute__((preserve_access_index));

/* The reader sees one whole where `changes` is even and did not change. */
struct worker {
	__u64 changes;
	/* Up to the last switch; on a processor since, 0: it is on none; ready or asleep since. */
	__u64 run_ns;
	__u64 on_ns;
	__u64 since_ns;
	/* All that it waited for a processor. */
	__u64 ready_ns;
	__u64 sleeps;
	__u64 requests;
	__u64 begin_run_ns;
	__u64 begin_at_ns;
	__u32 doing;
	/* The reader's: 0 is the top. */
	__u32 level;
	/* The connection's descriptor, -1: none; whether something was written to it since the request began. */
	__s32 client;
	__u32 has_answered;
	/* What requests like this one have in common, 0: not known. */
	__u64 kind;
	struct reading reading;
	/* Whether a request has begun that is not over. */
	__u32 has_begun;
	/* Whether others read from the connections that it accepts. */
	__u32 hands_on;
	/* What the application says that the request will use in all, 0: nothing. */
	__u64 said_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct worker);
	__uint(max_entries, WORKERS_MAX);
} workers SEC(".maps");

/* From a thread's number to its place in `workers`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, WORKERS_MAX);
} places SEC(".maps");

/* Connections of a process that were accepted, by its number and theirs, each with the place of the thread that did. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u64);
	__type(value, __u32);
	__uint(max_entries, 4 * WORKERS_MAX);
} accepted SEC(".maps");

/* The processes of the server. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u8);
	__uint(max_entries, WORKERS_MAX);
} processes SEC(".maps");

/* What the reader wants to be told of: nothing, all that may change a level, or only workers that may stand on top again. */
enum { WANTS_NOTHING, WANTS_ALL, WANTS_RESTS };

struct desk {
	/* The reader's. */
	__u32 reader_wants;
	/* Workers that want a processor, and those of them that wait for one. */
	__s32 active;
	__s32 ready;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct desk);
	__uint(max_entries, 1);
} desks SEC(".maps");

/* For how long workers waited while a processor was another's, and while it was one of their own; since when it has its task. */
struct processor {
	__u64 switched_ns;
	__u64 behind_others_ns;
	__u64 behind_own_ns;
	__u64 others_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct processor);
	__uint(max_entries, 1);
} processors SEC(".maps");

struct told {
	__u32 kind;
	__u32 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} tellings SEC(".maps");

/* The level on which requests of a kind begin, where that is not the top one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, __u32);
	__uint(max_entries, KINDS_MAX);
} starts SEC(".maps");

/* A request that is over. */
struct ended {
	__u64 kind;
	__u64 began_at_ns;
	__u64 used_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 262144);
} endings SEC(".maps");
