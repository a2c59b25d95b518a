/*
 * model.c: the lock table as a model, played at random, with order.c in it.
 *
 * A process waits for one lock at a time, is put into the queue by
 * JoinWaitQueue()'s rules, and looks for a cycle once, at some time during
 * its wait, as DeadLockCheck() does: what the soft edge of a cycle allows is
 * repaired by another order, anything else ends the process's transaction. At
 * any time a queue may be ordered by random priorities. After each step:
 *   - no cycle consists of waits that have all been looked at,
 *   - no waiter could have its lock.
 * Then the same is played with one rule off at a time, and must fail: a rule
 * that is never needed would be a test that tests nothing.
 *
 * usage: model [GAMES [SEED]]
 */
#include "order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES 6
#define LOCKS 3
#define STEPS 400
#define NOTHING (-1)

/* Which rule is off. */
typedef enum Without
{
	WITH_ALL,
	WITHOUT_COVER,
	WITHOUT_HOLDING,
	WITHOUT_GROUP,
	WITHOUT_COUNT
} Without;

static const char *const without_names[] = {"all rules", "no cover", "no holding", "no group"};

/* lock.c, LockConflicts[]. */
static const int conflicts[ORDER_MODE_MAX + 1] = {
	0, 0x100, 0x180, 0x1e0, 0x1f0, 0x1d8, 0x1f8, 0x1fc, 0x1fe
};

static uint32_t held[PROCESSES][LOCKS];
static int	waits_for[PROCESSES];	/* a lock or NOTHING */
static int	mode_of[PROCESSES];
static bool is_checked[PROCESSES];
static int	group_of[PROCESSES];	/* its leader */
static int	queue[LOCKS][PROCESSES];
static int	length[LOCKS];
static Without without;
static long reorders;
static long repairs;
static long deadlocks;
static uint64_t random_state;

static int
draw(int below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (int) (random_state >> 33) % below;
}

static bool
is_held_against(int process, int lock, int mode)
{
	for (int other = 0; other < PROCESSES; other++)
		if (group_of[other] != group_of[process] &&
			((uint32_t) conflicts[mode] & held[other][lock]))
			return true;
	return false;
}

static bool
is_alone(int process)
{
	for (int other = 0; other < PROCESSES; other++)
		if (other != process && group_of[other] == group_of[process])
			return false;
	return true;
}

/* ProcLockWakeup(). */
static void
wake(int lock)
{
	uint32_t	ahead = 0;
	int			kept = 0;

	for (int i = 0; i < length[lock]; i++)
	{
		int			process = queue[lock][i];
		int			mode = mode_of[process];

		if (!((uint32_t) conflicts[mode] & ahead) && !is_held_against(process, lock, mode))
		{
			held[process][lock] |= ORDER_BIT(mode);
			waits_for[process] = NOTHING;
			continue;
		}
		ahead |= ORDER_BIT(mode);
		queue[lock][kept++] = process;
	}
	length[lock] = kept;
}

static void
leave_queue(int process)
{
	int			lock = waits_for[process];
	int			kept = 0;

	if (lock == NOTHING)
		return;
	for (int i = 0; i < length[lock]; i++)
		if (queue[lock][i] != process)
			queue[lock][kept++] = queue[lock][i];
	length[lock] = kept;
	waits_for[process] = NOTHING;
	wake(lock);
}

/* The transaction ends; so do those of its group. */
static void
finish(int process)
{
	for (int other = 0; other < PROCESSES; other++)
	{
		if (group_of[other] != group_of[process])
			continue;
		leave_queue(other);
		for (int lock = 0; lock < LOCKS; lock++)
			if (held[other][lock] != 0)
			{
				held[other][lock] = 0;
				wake(lock);
			}
	}
}

/* LockAcquireExtended() and JoinWaitQueue(). */
static void
acquire(int process, int lock, int mode)
{
	uint32_t	wait_mask = 0;
	uint32_t	ahead = 0;
	uint32_t	group_held = 0;
	int			place = length[lock];

	if (held[process][lock] & ORDER_BIT(mode))
		return;
	for (int i = 0; i < length[lock]; i++)
		wait_mask |= ORDER_BIT(mode_of[queue[lock][i]]);
	if (!((uint32_t) conflicts[mode] & wait_mask) && !is_held_against(process, lock, mode))
	{
		held[process][lock] |= ORDER_BIT(mode);
		return;
	}
	for (int other = 0; other < PROCESSES; other++)
		if (group_of[other] == group_of[process])
			group_held |= held[other][lock];
	for (int i = 0; i < length[lock] && group_held != 0; i++)
	{
		int			other = queue[lock][i];

		if (group_of[other] == group_of[process])
			continue;
		if ((uint32_t) conflicts[mode_of[other]] & group_held)
		{
			if ((uint32_t) conflicts[mode] & held[other][lock])
			{
				finish(process);	/* early deadlock */
				return;
			}
			if (!((uint32_t) conflicts[mode] & ahead) && !is_held_against(process, lock, mode))
			{
				/*
				 * Granted out of turn. Not played for a parallel group: if another of it waits,
				 * those behind get an edge to it at which nobody looks, without any reorder.
				 */
				if (is_alone(process))
					held[process][lock] |= ORDER_BIT(mode);
				return;
			}
			place = i;
			break;
		}
		ahead |= ORDER_BIT(mode_of[other]);
	}
	memmove(&queue[lock][place + 1], &queue[lock][place],
			sizeof(int) * (size_t) (length[lock] - place));
	queue[lock][place] = process;
	length[lock]++;
	waits_for[process] = lock;
	mode_of[process] = mode;
	is_checked[process] = false;
}

/* FindLockCycle(): a way from one to another; only by checked waits if told so. */
static int	soft_waiter;
static int	soft_blocker;
static bool seen[PROCESSES];

static bool
leads_to(int from, int to, bool only_checked)
{
	for (int waiter = 0; waiter < PROCESSES; waiter++)
	{
		int			lock = waits_for[waiter];
		int			last = 0;

		if (group_of[waiter] != from || lock == NOTHING || (only_checked && !is_checked[waiter]))
			continue;
		for (int i = 0; i < length[lock]; i++)
			if (group_of[queue[lock][i]] == from &&
				(!only_checked || is_checked[queue[lock][i]]))
				last = i;
		for (int pass = 0; pass < 2; pass++)
			for (int i = 0; i < (pass == 0 ? PROCESSES : last); i++)
			{
				int			other = pass == 0 ? i : queue[lock][i];
				uint32_t	mask = pass == 0 ? held[other][lock] : ORDER_BIT(mode_of[other]);

				if (group_of[other] == from || !((uint32_t) conflicts[mode_of[waiter]] & mask))
					continue;
				if (group_of[other] != to &&
					(seen[group_of[other]] ||
					 (seen[group_of[other]] = true,
					  !leads_to(group_of[other], to, only_checked))))
					continue;
				if (pass == 1)
				{
					soft_waiter = waiter;
					soft_blocker = other;
				}
				return true;
			}
	}
	return false;
}

static bool
is_in_cycle(int process, bool only_checked)
{
	memset(seen, 0, sizeof(seen));
	soft_waiter = NOTHING;
	return leads_to(group_of[process], group_of[process], only_checked);
}

/* DeadLockCheck(), with one soft edge turned at most. */
static void
check(int process)
{
	is_checked[process] = true;
	if (!is_in_cycle(process, false))
		return;
	if (soft_waiter != NOTHING)
	{
		int			waiter = soft_waiter;
		int			blocker = soft_blocker;
		int			lock = waits_for[waiter];
		int			before[PROCESSES];
		int			kept = 0;

		memcpy(before, queue[lock], sizeof(before));
		for (int i = 0; i < length[lock]; i++)
		{
			if (before[i] == blocker)
				queue[lock][kept++] = waiter;
			if (before[i] != waiter)
				queue[lock][kept++] = before[i];
		}
		if (!is_in_cycle(waiter, false) && !is_in_cycle(blocker, false) &&
			!is_in_cycle(process, false))
		{
			repairs++;
			wake(lock);
			return;
		}
		memcpy(queue[lock], before, sizeof(before));
	}
	deadlocks++;
	finish(process);
}

/* queue_order(), with priorities that are drawn anew. */
static void
reorder(int lock)
{
	Waiter		waiters[PROCESSES];
	uint32_t	ahead[PROCESSES];
	int			places[PROCESSES];
	WaitQueue	wait_queue = {.waiters = waiters, .ahead = ahead};

	order_begin(&wait_queue, conflicts);
	wait_queue.count = length[lock];
	for (int i = 0; i < length[lock]; i++)
	{
		int			process = queue[lock][i];

		places[i] = process;
		waiters[i].process = &places[i];
		waiters[i].since_us = 1 + draw(3);
		waiters[i].held = without == WITHOUT_HOLDING ? 0 : held[process][lock];
		waiters[i].mode = (uint8_t) mode_of[process];
		waiters[i].rank = (uint8_t) (1 + draw(3));
		waiters[i].overdue = draw(8) == 0;
		if (without != WITHOUT_GROUP && !is_alone(process))
			return;
	}
	for (int process = 0; process < PROCESSES; process++)
	{
		if (held[process][lock] == 0)
			continue;
		if (without != WITHOUT_GROUP && !is_alone(process))
			return;
		if (without != WITHOUT_COVER)
			order_add_holder(&wait_queue, held[process][lock]);
	}
	if (order_queue(&wait_queue).moved == 0)
		return;
	reorders++;
	for (int i = 0; i < length[lock]; i++)
		queue[lock][i] = *(int *) waiters[i].process;
	wake(lock);
}

/* What went wrong, or NULL. */
static const char *
what_is_wrong(void)
{
	for (int process = 0; process < PROCESSES; process++)
		if (is_in_cycle(process, true))
			return "a deadlock that nobody looks for";
	for (int lock = 0; lock < LOCKS; lock++)
	{
		int			first = length[lock] > 0 ? queue[lock][0] : NOTHING;

		if (first != NOTHING && !is_held_against(first, lock, mode_of[first]))
			return "a waiter that could have its lock";
	}
	return NULL;
}

static void
step(void)
{
	static const int likely_modes[] = {1, 3, 3, 5, 7, 8, 8, 8};
	int			process = draw(PROCESSES);

	if (draw(4) == 0)
		reorder(draw(LOCKS));
	else if (waits_for[process] != NOTHING)
	{
		if (!is_checked[process] && draw(3) == 0)
			check(process);
		else if (draw(40) == 0)
			finish(process);	/* cancelled */
	}
	else if (draw(10) == 0)
		finish(process);
	else if (draw(12) == 0)
	{
		int			lock = draw(LOCKS);	/* a savepoint, an advisory unlock */

		held[process][lock] &= held[process][lock] - 1;
		wake(lock);
	}
	else
		acquire(process, draw(LOCKS), likely_modes[draw(8)]);
}

/* Plays one game; what went wrong in it, or NULL. */
static const char *
play(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15u + 1;
	memset(held, 0, sizeof(held));
	memset(length, 0, sizeof(length));
	for (int process = 0; process < PROCESSES; process++)
	{
		waits_for[process] = NOTHING;
		group_of[process] = process;
	}
	if (draw(2) == 0)
		group_of[1] = 0;		/* a parallel worker */
	for (int i = 0; i < STEPS; i++)
	{
		const char *wrong;

		step();
		wrong = what_is_wrong();
		if (wrong != NULL)
			return wrong;
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	long		games = argc > 1 ? atol(argv[1]) : 20000;
	uint64_t	seed = argc > 2 ? (uint64_t) atoll(argv[2]) : 1;
	bool		is_good = true;

	for (without = WITH_ALL; without < WITHOUT_COUNT; without++)
	{
		long		wrong_games = 0;
		const char *first = NULL;

		reorders = repairs = deadlocks = 0;
		for (long game = 0; game < games; game++)
		{
			const char *wrong = play(seed + (uint64_t) game);

			if (wrong != NULL && wrong_games++ == 0)
			{
				first = wrong;
				if (without == WITH_ALL)
					printf("seed %ld: %s\n", (long) seed + game, wrong);
			}
		}
		printf("%s: %ld games, %ld reorders, %ld repairs, %ld deadlocks, %ld wrong%s%s\n",
			   without_names[without], games, reorders, repairs, deadlocks, wrong_games,
			   first ? ": " : "", first ? first : "");
		is_good &= (without == WITH_ALL) == (wrong_games == 0);
	}
	return is_good ? 0 : 1;
}
