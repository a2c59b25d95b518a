/*
 * settings.c: what is set in postgresql.conf, and `sooner.priority`.
 */
#include "postgres.h"

#include "sooner_locks.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

bool		setting_order = true;
double		setting_scan_interval_ms = 1.0;
bool		setting_inherit = false;
int			setting_max_wait_ms = 10000;
uint32		setting_types = 0;
char	   *setting_map = NULL;

static int	setting_priority = PRIORITY_NONE;
static char *setting_types_text = NULL;

/* A kind of lock that has queues worth ordering. */
typedef struct OrderedType
{
	const char *name;
	LockTagType type;
} OrderedType;

static const OrderedType ordered_types[] = {
	{"tuple", LOCKTAG_TUPLE},
	{"relation", LOCKTAG_RELATION},
	{"advisory", LOCKTAG_ADVISORY},
	{"object", LOCKTAG_OBJECT},
	{"transactionid", LOCKTAG_TRANSACTION},
};

static bool
types_check(char **text, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*text);
	List	   *names = NIL;
	ListCell   *cell;
	uint32		types = 0;
	uint32	   *kept;

	if (!SplitIdentifierString(copy, ',', &names))
	{
		GUC_check_errdetail("List syntax is invalid.");
		return false;
	}
	foreach(cell, names)
	{
		const char *name = (const char *) lfirst(cell);
		bool		is_known = false;

		for (int i = 0; i < (int) lengthof(ordered_types); i++)
			if (strcmp(name, ordered_types[i].name) == 0)
			{
				types |= (uint32) 1 << ordered_types[i].type;
				is_known = true;
			}
		if (!is_known)
		{
			GUC_check_errdetail("There is no order for locks of type \"%s\".", name);
			GUC_check_errhint("Types are tuple, relation, advisory, object, transactionid.");
			return false;
		}
	}
	list_free(names);
	pfree(copy);
	kept = (uint32 *) setting_extra(sizeof(uint32));
	if (kept == NULL)
		return false;
	*kept = types;
	*extra = kept;
	return true;
}

static void
types_assign(const char *text, void *extra)
{
	setting_types = *(const uint32 *) extra;
}

/* The rules by which the worker orders. */
static void
define_rules(void)
{
	DefineCustomBoolVariable("sooner.lock_order",
							 "Orders the wait queues of locks by priority.", NULL,
							 &setting_order, true, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("sooner.lock_inherit",
							 "Who holds what a prioritised backend waits for has its priority.",
							 NULL, &setting_inherit, false, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("sooner.lock_max_wait",
							"After this wait a backend is overtaken no more.",
							"0 is no bound.",
							&setting_max_wait_ms, 10000, 0, INT_MAX / 2, PGC_SIGHUP,
							GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("sooner.lock_types",
							   "Types of locks of which the wait queues are ordered.", NULL,
							   &setting_types_text, "tuple, relation, advisory, transactionid",
							   PGC_SIGHUP,
							   GUC_LIST_INPUT, types_check, types_assign, NULL);
}

void
settings_define(void)
{
	define_rules();
	DefineCustomRealVariable("sooner.lock_scan_interval",
							 "Time between two looks while a prioritised backend waits.", NULL,
							 &setting_scan_interval_ms, 1.0, 0.1, 1000.0, PGC_SIGHUP,
							 GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("sooner.lock_map",
							   "File in which another program tells priorities.",
							   "Relative to the data directory; best where no disk is.",
							   &setting_map, "sooner_locks.map", PGC_POSTMASTER, 0,
							   NULL, NULL, NULL);
	/* SUSET: a role may set it once it was granted, see README.md. */
	DefineCustomIntVariable("sooner.priority",
							"Place of this session in wait queues of locks.",
							"1 goes first, 200 last; 0 is none and counts as 100.",
							&setting_priority, PRIORITY_NONE, PRIORITY_NONE, PRIORITY_LAST,
							PGC_SUSET, 0, priority_check_setting, priority_assign_setting, NULL);
	MarkGUCPrefixReserved("sooner");
}
