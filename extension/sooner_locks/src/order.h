/*
 * order.h: in which order a wait queue should be, and which moves are safe.
 *
 * Knows nothing of the server, so that test/model.c can check it against an
 * exhaustive detector. The argument why these moves are safe is in README.md,
 * "Deadlocks"; the names are the same there.
 */
#ifndef SOONER_ORDER_H
#define SOONER_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Lock modes are 1 to 8, as in lockdefs.h; bit 0 of a mask is unused. */
#define ORDER_MODE_MAX 8
#define ORDER_BIT(mode) ((uint32_t) 1 << (mode))

/* Priorities are 1 to 200; 1 goes first. Who has none counts as the middle. */
#define PRIORITY_NONE 0
#define PRIORITY_FIRST 1
#define PRIORITY_MIDDLE 100
#define PRIORITY_LAST 200

/* One who waits. */
typedef struct Waiter
{
	void	   *process;		/* the server's own */
	int64_t		since_us;		/* when this wait began; 0 is not yet known */
	uint32_t	held;			/* modes that it has of this lock already */
	uint8_t		mode;			/* what it waits for */
	uint8_t		rank;			/* its priority, PRIORITY_MIDDLE where it has none */
	bool		overdue;		/* it has waited longer than the bound */
} Waiter;

/* A wait queue, and what its holders mean for it. */
typedef struct WaitQueue
{
	Waiter	   *waiters;		/* front first */
	uint32_t   *ahead;			/* work space: modes of those before each */
	const int  *conflicts;		/* mask of what each mode conflicts with */
	uint32_t	covers[ORDER_MODE_MAX + 1]; /* see order_add_holder() */
	int			count;
} WaitQueue;

/* What order_queue() did. */
typedef struct Ordered
{
	int			moved;			/* waiters that went forward */
	int			overdue_moved;	/* of these, moved by the bound */
	bool		refused_holding;	/* a move would pass one that holds this lock too */
	bool		refused_unsafe; /* a move would make an edge that no process checks */
} Ordered;

#pragma GCC visibility push(hidden)
extern void order_begin(WaitQueue *queue, const int *conflicts);
extern void order_add_holder(WaitQueue *queue, uint32_t hold_mask);
extern bool order_goes_before(const Waiter *a, const Waiter *b);
extern bool order_is_in_order(const WaitQueue *queue);
extern Ordered order_queue(WaitQueue *queue);
#pragma GCC visibility pop

#endif
