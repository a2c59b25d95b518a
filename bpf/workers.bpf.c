// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Watches the workers of a server that works on one request in each: what processor time they use, whether they wait for a processor or
// for something else, and when a request begins. It changes nothing; the reader does, and sleeps while nothing would change.
//
// A request begins when a connection is accepted, or when something is read from it after an answer was written to it. Of what is read
// first, the method and the path become a number (request.h), and requests with the same one are alike; of all other system calls only
// the results are looked at. An application may say what its request will use: it gives its thread the name `sooner 120ms`.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "calls.h"
#include "request.h"
#include "said.h"
#include "workers.h"

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

/* The request is over, if one has begun; the reader is not woken for that. */
static __always_inline void end(struct worker *worker, __u64 run_ns)
{
	struct ended *ended;

	if (!worker->has_begun)
		return;
	worker->has_begun = 0;
	ended = bpf_ringbuf_reserve(&endings, sizeof(*ended), 0);
	/* What does not fit is not learned from. */
	if (!ended)
		return;
	ended->kind = worker->kind;
	ended->began_at_ns = worker->begin_at_ns;
	ended->used_ns = run_ns - worker->begin_run_ns;
	bpf_ringbuf_submit(ended, BPF_RB_NO_WAKEUP);
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
		if (worker->doing == IDLE)
			end(worker, worker->run_ns);
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

/* By one that is on a processor. */
static __always_inline __u64 used_by_now(struct worker *worker)
{
	return worker->run_ns + (worker->on_ns ? bpf_ktime_get_ns() - worker->on_ns : 0);
}

static __always_inline void begin(struct worker *worker, __u32 place)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 run_ns = used_by_now(worker);

	end(worker, run_ns);
	change(worker);
	worker->begin_at_ns = now;
	worker->begin_run_ns = run_ns;
	worker->requests++;
	worker->has_answered = 0;
	worker->has_begun = 1;
	worker->kind = 0;
	worker->said_ns = 0;
	worker->reading.awaits = AWAITS_FIRST;
	change(worker);
	if (worker->level)
		tell(TOLD_BEGUN, place);
}

static __always_inline void take_read(struct worker *worker, __u32 place, __u64 buffer, __u32 length)
{
	__u64 kind = kind_of_read(&worker->reading, buffer, length);
	struct desk *desk = the_desk();
	__u32 *start, level;

	if (!kind || !desk)
		return;
	change(worker);
	worker->kind = kind;
	change(worker);
	start = bpf_map_lookup_elem(&starts, &kind);
	level = start ? *start : 0;
	/* One that stands too low was told of when it began, and one alone goes before none. */
	if (level > worker->level && desk->active > 1)
		tell(TOLD_BEGUN, place);
}

/* Whether a thread uses a connection that another one of its process has accepted: it is its own then. */
static __always_inline int takes_over(struct worker *worker, __u32 place, __u64 key)
{
	__u32 *by = bpf_map_lookup_elem(&accepted, &key);
	struct worker *acceptor;
	__u32 acceptor_place;

	if (!by || *by == place)
		return 0;
	acceptor_place = *by;
	acceptor = bpf_map_lookup_elem(&workers, &acceptor_place);
	if (acceptor) {
		acceptor->hands_on = 1;
		acceptor->has_begun = 0;
	}
	worker->client = (__s32)key;
	return 1;
}

static __always_inline void take_accepted(struct worker *worker, __u32 place, __s32 connection, __u64 key)
{
	bpf_map_update_elem(&accepted, &key, &place, BPF_ANY);
	if (worker->hands_on)
		return;
	worker->client = connection;
	begin(worker, place);
}

SEC("tp_btf/sys_exit")
int note_call(__u64 *arguments)
{
	void *registers = (void *)arguments[0];
	long result = arguments[1];
	__u64 thread = bpf_get_current_pid_tgid();
	__u32 place = 0, call;
	struct worker *worker = worker_of((__u32)thread, &place);
	__u64 key = thread & ~0xffffffffULL;
	__s32 file;

	if (!worker || result < 0)
		return 0;
	call = number_of_call(registers);
	if (is_accept(call)) {
		take_accepted(worker, place, result, key | (__u32)result);
		return 0;
	}
	if (!(is_read(call) || is_write(call) || is_close(call)))
		return 0;
	file = first_argument(registers);
	key |= (__u32)file;
	if (is_close(call))
		bpf_map_delete_elem(&accepted, &key);
	if (file != worker->client) {
		if (is_close(call) || result == 0 || !takes_over(worker, place, key))
			return 0;
		/* What it reads begins, as after an answer. */
		worker->has_answered = 1;
	}
	if (is_close(call)) {
		/* Some wait for the next connection in a call that does not say so. */
		end(worker, used_by_now(worker));
		worker->client = -1;
		worker->has_answered = 1;
	} else if (result > 0 && is_write(call)) {
		worker->has_answered = 1;
	} else if (result > 0) {
		if (worker->has_answered)
			begin(worker, place);
		if (worker->reading.awaits && is_plain_read(call))
			take_read(worker, place, second_argument(registers), result > 65535 ? 65535 : result);
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

/* Before its number can be another one's. */
SEC("tp_btf/sched_process_exit")
int note_exit(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 thread = task->pid, place = 0, did;
	struct worker *worker = worker_of(thread, &place);
	struct desk *desk = the_desk();

	if (!worker || !desk)
		return 0;
	bpf_map_delete_elem(&places, &thread);
	did = worker->doing;
	change(worker);
	worker->doing = GONE;
	change(worker);
	if (did == RUNS || did == READY)
		__sync_fetch_and_add(&desk->active, -1);
	if (did == READY)
		__sync_fetch_and_add(&desk->ready, -1);
	return 0;
}

SEC("tp_btf/task_rename")
int note_name(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];
	__u32 place = 0;
	struct worker *worker = worker_of(task->pid, &place);
	struct desk *desk = the_desk();
	char name[NAME_BYTES] = {};
	__u64 said_ns;

	if (!worker || !desk || bpf_probe_read_kernel(name, sizeof(name), (void *)arguments[1]))
		return 0;
	said_ns = said_in_name(name);
	if (!said_ns)
		return 0;
	change(worker);
	worker->said_ns = said_ns;
	change(worker);
	/* One alone goes before none. */
	if (worker->level || desk->active > 1)
		tell(TOLD_BEGUN, place);
	return 0;
}

char license_of_programs[] SEC("license") = "Dual MIT/GPL";
