// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What an application says of its request: it gives its thread a name with the processor time in it.

/* Of a thread's name, with the 0 at its end. */
#define NAME_BYTES 16

/* The processor time in a thread's name such as `sooner 120ms`, ns; 0 in any other. */
static __always_inline __u64 said_in_name(const char *name)
{
	static const char first[] = "sooner ";
	__u64 value = 0, unit_ns = 0;
	int is_over = 0;

#pragma unroll
	for (int at = 0; at < NAME_BYTES; at++) {
		char letter = name[at];

		if (at < (int)sizeof(first) - 1) {
			if (letter != first[at])
				return 0;
		} else if (!is_over && letter >= '0' && letter <= '9') {
			value = 10 * value + (letter - '0');
		} else if (!is_over) {
			char next = at + 1 < NAME_BYTES ? name[at + 1] : 0;

			is_over = 1;
			if (letter == 's' && !next)
				unit_ns = 1000000000;
			else if (letter == 'm' && next == 's')
				unit_ns = 1000000;
			else if (letter == 'u' && next == 's')
				unit_ns = 1000;
		}
	}
	return value * unit_ns;
}
