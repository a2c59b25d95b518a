/*
 * order.c: the order of one wait queue. Pure: no server, no clock, no memory.
 */
#include "order.h"

#include <assert.h>

/* May a waiter pass its predecessor? */
typedef enum Passing
{
	PASS,
	PASS_REFUSED_HOLDING,
	PASS_REFUSED_UNSAFE
} Passing;

/* Starts with a queue that no one holds: then every mode covers every other. */
void
order_begin(WaitQueue *queue, const int *conflicts)
{
	queue->conflicts = conflicts;
	queue->count = 0;
	for (int mode = 0; mode <= ORDER_MODE_MAX; mode++)
		queue->covers[mode] = ~(uint32_t) 0;
}

/*
 * Counts one process that holds the lock.
 *
 * Mode a covers mode b where a waits for every holder for which b waits. A
 * holder that hits b but not a ends that.
 */
void
order_add_holder(WaitQueue *queue, uint32_t hold_mask)
{
	uint32_t	hits = 0;

	for (int mode = 1; mode <= ORDER_MODE_MAX; mode++)
		if ((uint32_t) queue->conflicts[mode] & hold_mask)
			hits |= ORDER_BIT(mode);
	for (int mode = 1; mode <= ORDER_MODE_MAX; mode++)
		if (!(hits & ORDER_BIT(mode)))
			queue->covers[mode] &= ~hits;
}

/*
 * The wanted order, strict: the overdue by arrival, then by priority.
 * Equals are left as they arrived.
 */
bool
order_goes_before(const Waiter *a, const Waiter *b)
{
	if (a->overdue != b->overdue)
		return a->overdue;
	if (a->overdue)
		return a->since_us < b->since_us;
	return a->rank < b->rank;
}

/* Whether there is nothing to do; says nothing of what would be safe. */
bool
order_is_in_order(const WaitQueue *queue)
{
	for (int i = 1; i < queue->count; i++)
		if (order_goes_before(&queue->waiters[i], &queue->waiters[i - 1]))
			return false;
	return true;
}

/*
 * The four rules. `ahead` has the modes of all before the one that is passed.
 */
static Passing
may_pass(const WaitQueue *queue, const Waiter *mover, const Waiter *passed, uint32_t ahead)
{
	uint32_t	wanted = (uint32_t) queue->conflicts[mover->mode];
	uint32_t	all = ahead | ORDER_BIT(mover->mode);

	/* 1. A process that holds what the mover waits for stays in front: ProcSleep's rule. */
	if (wanted & passed->held)
		return PASS_REFUSED_HOLDING;
	/* 2. Where the two do not conflict, no edge is made. */
	if (!(wanted & ORDER_BIT(passed->mode)))
		return PASS;
	/* 3. A holder that waits is a node of which the next rule knows nothing. */
	if (passed->held != 0)
		return PASS_REFUSED_HOLDING;
	/* 4. Who is passed waits already for whomever the mover and those ahead wait for. */
	if ((queue->covers[passed->mode] & all) != all)
		return PASS_REFUSED_UNSAFE;
	return PASS;
}

/* Recounts `ahead` from a place on. */
static void
count_ahead(WaitQueue *queue, int from, int to)
{
	for (int i = from; i <= to; i++)
		queue->ahead[i] = i == 0 ? 0 :
			queue->ahead[i - 1] | ORDER_BIT(queue->waiters[i - 1].mode);
}

/* Moves waiters forward, one after the other, as far as they want and may. */
Ordered
order_queue(WaitQueue *queue)
{
	Ordered		done = {0, 0, false, false};

	assert(queue->count >= 0);
	if (queue->count > 0)
		count_ahead(queue, 0, queue->count - 1);
	for (int from = 1; from < queue->count; from++)
	{
		Waiter		mover = queue->waiters[from];
		int			to = from;
		bool		by_bound = false;

		assert(mover.mode >= 1 && mover.mode <= ORDER_MODE_MAX);
		while (to > 0 && order_goes_before(&mover, &queue->waiters[to - 1]))
		{
			const Waiter *passed = &queue->waiters[to - 1];
			Passing		passing = may_pass(queue, &mover, passed, queue->ahead[to - 1]);

			done.refused_holding |= passing == PASS_REFUSED_HOLDING;
			done.refused_unsafe |= passing == PASS_REFUSED_UNSAFE;
			if (passing != PASS)
				break;
			by_bound |= mover.overdue && passed->rank <= mover.rank;
			queue->waiters[to] = *passed;
			to--;
		}
		if (to == from)
			continue;
		queue->waiters[to] = mover;
		count_ahead(queue, to, from);
		done.moved++;
		done.overdue_moved += by_bound;
	}
	return done;
}
