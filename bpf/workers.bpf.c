// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Watches the workers of a server that works on one request in each: what processor time they use, whether they wait for a processor or
// for something else, and when a request begins. It changes nothing; the reader does, and sleeps while nothing would change.
//
// A request begins when a connection is accepted, or when something is read from it after an answer was written to it. Only the
// results of those system calls are looked at.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define WORKERS_MAX 4096

enum { MACHINE_X86_64, MACHINE_AARCH64 };
enum { UNKNOWN, RUNS, READY, ASLEEP, IDLE };
enum { TOLD_WOKEN, TOLD_RESTS, TOLD_BEGUN, TOLD_FORKED };

/* How a process's registers lie in memory. */
volatile const __u32 machine = MACHINE_X86_64;

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

static __always_inline void tell(__u32 kind, __u32 number)
{
	struct told *told = bpf_ringbuf_reserve(&tellings, sizeof(*told), 0);

	/* A full ring has woken its reader already. */
	if (!told)
		return;
	told->kind = kind;
	told->number = number;
	bpf_ringbuf_submit(told, 0);
}

static __always_inline struct worker *worker_of(__u32 thread, __u32 *place)
{
	__u32 *found = bpf_map_lookup_elem(&places, &thread);

	if (!found)
		return 0;
	*place = *found;
	return bpf_map_lookup_elem(&workers, found);
}

/* Around what the reader is to see whole: the compiler keeps the two apart. */
static __always_inline void change(struct worker *worker)
{
	asm volatile("" ::: "memory");
	worker->changes++;
	asm volatile("" ::: "memory");
}

static __always_inline struct desk *the_desk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&desks, &zero);
}

static __always_inline int is_active(struct worker *worker)
{
	return worker->doing == RUNS || worker->doing == READY;
}

static __always_inline __u32 number_of_call(void *registers)
{
	__u64 number = ~0ULL;

	if (machine == MACHINE_X86_64)
		bpf_probe_read_kernel(&number, sizeof(number), registers + 120);
	else
		bpf_probe_read_kernel(&number, sizeof(__u32), registers + 280);
	return number;
}

/* The first argument, as it was when the call began. */
static __always_inline __s32 first_argument(void *registers)
{
	__u64 argument = ~0ULL;

	bpf_probe_read_kernel(&argument, sizeof(argument), registers + (machine == MACHINE_X86_64 ? 112 : 272));
	return argument;
}

static __always_inline int is_accept(__u32 call)
{
	return machine == MACHINE_X86_64 ? call == 43 || call == 288 : call == 202 || call == 242;
}

/* read, readv, recvfrom, recvmsg */
static __always_inline int is_read(__u32 call)
{
	if (machine == MACHINE_X86_64)
		return call == 0 || call == 19 || call == 45 || call == 47;
	return call == 63 || call == 65 || call == 207 || call == 212;
}

/* write, writev, sendfile, sendto, sendmsg */
static __always_inline int is_write(__u32 call)
{
	if (machine == MACHINE_X86_64)
		return call == 1 || call == 20 || call == 40 || call == 44 || call == 46;
	return call == 64 || call == 66 || call == 71 || call == 206 || call == 211;
}

/* close, shutdown: what is read behind that is no request. */
static __always_inline int is_close(__u32 call)
{
	if (machine == MACHINE_X86_64)
		return call == 3 || call == 48;
	return call == 57 || call == 210;
}

/* A processor goes from one task to another: what the first had of it. */
static __always_inline void account(struct desk *desk, __u64 now, int had_worker, __u32 thread)
{
	__u32 zero = 0;
	struct processor *processor = bpf_map_lookup_elem(&processors, &zero);

	if (!processor)
		return;
	if (processor->switched_ns && thread) {
		__u64 had_ns = now - processor->switched_ns;
		__s32 ready = desk->ready;

		if (!had_worker)
			processor->others_ns += had_ns;
		if (ready > 0 && had_worker)
			processor->behind_own_ns += had_ns * ready;
		else if (ready > 0)
			processor->behind_others_ns += had_ns * ready;
	}
	processor->switched_ns = now;
}

static __always_inline void leave(struct desk *desk, struct worker *worker, __u32 place, __u64 now, int sleeps)
{
	int was_active = is_active(worker);

	change(worker);
	if (worker->on_ns)
		worker->run_ns += now - worker->on_ns;
	worker->on_ns = 0;
	worker->since_ns = now;
	if (sleeps) {
		void *registers = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

		worker->doing = registers && is_accept(number_of_call(registers)) ? IDLE : ASLEEP;
		worker->sleeps++;
	} else {
		worker->doing = READY;
	}
	change(worker);
	if (sleeps && was_active)
		__sync_fetch_and_add(&desk->active, -1);
	if (!sleeps) {
		__sync_fetch_and_add(&desk->ready, 1);
		if (!was_active)
			__sync_fetch_and_add(&desk->active, 1);
	}
	/* It may stand on the top level again. */
	if (sleeps && worker->level && desk->reader_wants && (worker->doing == IDLE || worker->has_answered || !worker->requests))
		tell(TOLD_RESTS, place);
}

static __always_inline void enter(struct desk *desk, struct worker *worker, __u64 now)
{
	int was_active = is_active(worker);

	change(worker);
	if (worker->doing == READY) {
		worker->ready_ns += now - worker->since_ns;
		__sync_fetch_and_add(&desk->ready, -1);
	}
	worker->on_ns = now;
	worker->doing = RUNS;
	change(worker);
	if (!was_active)
		__sync_fetch_and_add(&desk->active, 1);
}

SEC("tp_btf/sched_switch")
int note_switch(__u64 *arguments)
{
	int preempts = arguments[0] & 1;
	struct task_struct *from = (struct task_struct *)arguments[1];
	struct task_struct *to = (struct task_struct *)arguments[2];
	__u64 now = bpf_ktime_get_ns();
	struct desk *desk = the_desk();
	struct worker *worker;
	__u32 place = 0;

	if (!desk)
		return 0;
	worker = from->pid ? worker_of(from->pid, &place) : 0;
	account(desk, now, worker != 0, from->pid);
	if (worker)
		leave(desk, worker, place, now, !preempts && from->__state);
	worker = to->pid ? worker_of(to->pid, &place) : 0;
	if (worker)
		enter(desk, worker, now);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int note_wakeup(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 place = 0;
	struct worker *worker = worker_of(task->pid, &place);
	struct desk *desk = the_desk();

	if (!worker || !desk || is_active(worker))
		return 0;
	change(worker);
	worker->doing = READY;
	worker->since_ns = bpf_ktime_get_ns();
	change(worker);
	__sync_fetch_and_add(&desk->active, 1);
	__sync_fetch_and_add(&desk->ready, 1);
	/* One alone goes before none. */
	if (desk->reader_wants == WANTS_ALL && desk->active > 1)
		tell(TOLD_WOKEN, place);
	return 0;
}

static __always_inline void begin(struct worker *worker, __u32 place)
{
	__u64 now = bpf_ktime_get_ns();

	change(worker);
	worker->begin_at_ns = now;
	worker->begin_run_ns = worker->run_ns + (worker->on_ns ? now - worker->on_ns : 0);
	worker->requests++;
	worker->has_answered = 0;
	change(worker);
	if (worker->level)
		tell(TOLD_BEGUN, place);
}

SEC("tp_btf/sys_exit")
int note_call(__u64 *arguments)
{
	void *registers = (void *)arguments[0];
	long result = arguments[1];
	__u32 place = 0, call;
	struct worker *worker = worker_of((__u32)bpf_get_current_pid_tgid(), &place);

	if (!worker || result < 0)
		return 0;
	call = number_of_call(registers);
	if (is_accept(call)) {
		worker->client = result;
		begin(worker, place);
		return 0;
	}
	if (worker->client < 0 || !(is_read(call) || is_write(call) || is_close(call)) || first_argument(registers) != worker->client)
		return 0;
	if (is_close(call)) {
		worker->client = -1;
		worker->has_answered = 1;
	} else if (result > 0 && is_write(call)) {
		worker->has_answered = 1;
	} else if (result > 0 && worker->has_answered) {
		begin(worker, place);
	}
	return 0;
}

SEC("tp_btf/sched_process_fork")
int note_fork(__u64 *arguments)
{
	struct task_struct *parent = (struct task_struct *)arguments[0];
	struct task_struct *child = (struct task_struct *)arguments[1];
	__u32 process = parent->tgid;

	if (bpf_map_lookup_elem(&processes, &process))
		tell(TOLD_FORKED, child->pid);
	return 0;
}

char license_of_programs[] SEC("license") = "Dual MIT/GPL";
