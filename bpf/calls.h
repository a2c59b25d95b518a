// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Which system call it is, and its arguments, by the registers of a process.

enum { MACHINE_X86_64, MACHINE_AARCH64 };

/* How a process's registers lie in memory. */
volatile const __u32 machine = MACHINE_X86_64;

static __always_inline __u32 number_of_call(void *registers)
{
	__u64 number = ~0ULL;

	if (machine == MACHINE_X86_64)
		bpf_probe_read_kernel(&number, sizeof(number), registers + 120);
	else
		bpf_probe_read_kernel(&number, sizeof(__u32), registers + 280);
	return number;
}

static __always_inline __u64 second_argument(void *registers)
{
	__u64 argument = 0;

	bpf_probe_read_kernel(&argument, sizeof(argument), registers + (machine == MACHINE_X86_64 ? 104 : 8));
	return argument;
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

/* read, recvfrom: what is read lies in one piece. */
static __always_inline int is_plain_read(__u32 call)
{
	return machine == MACHINE_X86_64 ? call == 0 || call == 45 : call == 63 || call == 207;
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
