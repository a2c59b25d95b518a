// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// How long a response under TLS will be: a probe reads the head that a server hands to its TLS library, before it is encrypted, and the
// packet that the same thread sends then takes its length. Nothing but the length is kept.

/* Of the kernel's structure only this; where it lies is looked up when the programs are loaded. */
struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

/* Arguments of a function, of C and of Go. Both kinds of machine are read, at fixed places, as the verifier wants it. */
static __always_inline __u64 argument(void *registers, int which)
{
	volatile __u64 *all = registers;
	__u64 on_aarch64 = all[which - 1];
	__u64 on_x86_64 = which == 1 ? all[14] : which == 2 ? all[13] : which == 3 ? all[12] : all[11];

	return machine == MACHINE_AARCH64 ? on_aarch64 : on_x86_64;
}

static __always_inline __u64 argument_of_go(void *registers, int which)
{
	volatile __u64 *all = registers;
	__u64 on_aarch64 = all[which - 1];
	__u64 on_x86_64 = which == 1 ? all[10] : which == 2 ? all[5] : all[11];

	return machine == MACHINE_AARCH64 ? on_aarch64 : on_x86_64;
}

static __always_inline __u64 returned(void *registers)
{
	volatile __u64 *all = registers;
	__u64 on_aarch64 = all[0];
	__u64 on_x86_64 = all[10];

	return machine == MACHINE_AARCH64 ? on_aarch64 : on_x86_64;
}

/* The most that a response of so much plain text takes, in records of 4 KB, each with so much more. */
static __always_inline __u64 in_records(__u64 bytes, __u32 overhead_bytes)
{
	return bytes + (bytes / 4096 + 1) * overhead_bytes;
}

/* By how much that may be too much. */
static __always_inline __u32 slack_of(__u64 bytes)
{
	__u64 slack = bytes / 128 + 64;

	return slack < 0xffffffff ? slack : 0xffffffff;
}

static __always_inline void keep(struct tls_length *said, __u32 bytes)
{
	__u32 thread = bpf_get_current_pid_tgid();

	said->at_ns = bpf_ktime_get_ns();
	said->first_record_bytes = bytes > RECORD_BYTES ? RECORD_BYTES : bytes;
	bpf_map_update_elem(&tls_lengths, &thread, said, BPF_ANY);
}

static __always_inline void read_http2(struct http2 *http2, struct tls_length *said, struct tls_call *call, __u64 buffer, __u32 bytes)
{
	__u32 thread = bpf_get_current_pid_tgid();
	__u32 repeated = http2->repeated_bytes;
	struct tls_call *known;

	call->connection = said->connection;
	call->buffer = buffer;
	call->bytes = bytes;
	known = bpf_map_lookup_elem(&tls_calls, &thread);
	/* One library by two names has two probes, which see the same call. */
	if (known && known->connection.address == call->connection.address && known->buffer == buffer && known->bytes == bytes &&
	    !said->is_cut)
		return;
	bpf_map_update_elem(&tls_calls, &thread, call, BPF_ANY);
	if (bytes <= repeated)
		return;
	said->has_streams = 1;
	said->born_ns = http2->born_ns;
	said->written_bytes = http2->written_bytes;
	said->written_records = http2->written_records;
	read_frames(http2, &said->connection, buffer + repeated, bytes - repeated);
	if (repeated == 0)
		keep(said, bytes);
}

static __always_inline void read_any(struct head *head, struct tls_length *said, struct tls_call *call, __u64 buffer, __u64 bytes)
{
	struct tls_key *key = &said->connection;
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, key);
	struct http2 fresh = {};
	__u32 length;

	/* In the middle of a frame, or of what comes again, its first bytes are anything. */
	if (http2 && (http2->frame_left || http2->header_has || http2->repeated_bytes)) {
		read_http2(http2, said, call, buffer, bytes);
		return;
	}
	/* GnuTLS is told so to go on with what it has. */
	if (bytes == 0)
		return;
	length = looked_at(bytes);
	if (bpf_probe_read_user(head->bytes, length, (void *)buffer)) {
		bpf_map_delete_elem(&http2_connections, key);
		return;
	}
	if (length >= 16 && is_response(head)) {
		/* The address of another connection before. */
		if (http2)
			bpf_map_delete_elem(&http2_connections, key);
		said->size_bytes = length_in(OF_TLS, length, 0);
		said->is_head_only = head->search.head_bytes == bytes;
		keep(said, bytes);
		return;
	}
	if (length >= FRAME_HEADER_BYTES && begins_http2(head)) {
		fresh.born_ns = bpf_ktime_get_ns();
		/* Streams of another connection with this address stay behind. */
		fresh.generation = bpf_get_prandom_u32();
		bpf_map_update_elem(&http2_connections, key, &fresh, BPF_ANY);
		http2 = bpf_map_lookup_elem(&http2_connections, key);
	}
	if (http2)
		read_http2(http2, said, call, buffer, bytes);
}

/* What a server hands over to one of its connections. */
static __always_inline int read_write(__u64 connection, __u64 buffer, __u64 bytes, __u64 taken_at, int is_cut)
{
	struct tls_call call = { .taken_at = taken_at };
	struct tls_length said = { .is_cut = is_cut };
	struct head *head = head_of(OF_TLS);

	said.connection.address = connection;
	said.connection.process = bpf_get_current_pid_tgid() >> 32;
	count(COUNT_TLS_WRITES, 1);
	if (!head || bytes > 0x7fffffff)
		return 0;
	if (__sync_lock_test_and_set(&head->is_busy, 1)) {
		bpf_map_delete_elem(&http2_connections, &said.connection);
		return 0;
	}
	read_any(head, &said, &call, buffer, bytes);
	head->is_busy = 0;
	return 0;
}

/* SSL_write(ssl, buffer, bytes), gnutls_record_send(session, buffer, bytes). The first has an int, and anything above it. */
SEC("uprobe")
int tls_write(void *registers)
{
	return read_write(argument(registers, 1), argument(registers, 2), (__u32)argument(registers, 3), 0, 0);
}

/* SSL_write_ex(ssl, buffer, bytes, written). */
SEC("uprobe")
int tls_write_ex(void *registers)
{
	return read_write(argument(registers, 1), argument(registers, 2), argument(registers, 3), argument(registers, 4), 0);
}

/* Any of these returns: what it did not take is handed over once more. */
SEC("uretprobe")
int tls_written(void *registers)
{
	__u32 thread = bpf_get_current_pid_tgid();
	struct tls_call *call = bpf_map_lookup_elem(&tls_calls, &thread);
	struct http2 *http2;
	__s32 result = returned(registers);
	__u64 taken = result > 0 ? result : 0;
	__u64 all;

	if (!call)
		return 0;
	http2 = bpf_map_lookup_elem(&http2_connections, &call->connection);
	if (taken && call->taken_at && bpf_probe_read_user(&taken, sizeof(taken), (void *)call->taken_at))
		taken = call->bytes;
	if (http2) {
		all = call->bytes > http2->repeated_bytes ? call->bytes : http2->repeated_bytes;
		http2->repeated_bytes = all > taken ? all - taken : 0;
	}
	bpf_map_delete_elem(&tls_calls, &thread);
	return 0;
}

/* (*tls.Conn).Write(buffer) of Go, which begins with small records, and takes all. */
SEC("uprobe")
int tls_write_of_go(void *registers)
{
	return read_write(argument_of_go(registers, 1), argument_of_go(registers, 2), argument_of_go(registers, 3), 0, 1);
}

static __always_inline int forget(__u64 connection)
{
	struct tls_key key = { .address = connection, .process = bpf_get_current_pid_tgid() >> 32 };

	bpf_map_delete_elem(&http2_connections, &key);
	return 0;
}

/* SSL_free(ssl), gnutls_deinit(session): another connection may get the address. */
SEC("uprobe")
int tls_free(void *registers)
{
	return forget(argument(registers, 1));
}

/* (*tls.Conn).Close() of Go: the same. */
SEC("uprobe")
int tls_close_of_go(void *registers)
{
	return forget(argument_of_go(registers, 1));
}

/* How many records at the begin of a packet are looked at: what belongs to the session may stand before the response. */
#define RECORDS_LOOKED_AT 6

/* Whether what the thread that sends this packet has just handed to its TLS library begins in it. */
static __noinline int begins_under_tls(struct __sk_buff *skb, struct packet *packet, struct tls_length *said)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 thread = task->pid;
	struct tls_length *known = bpf_map_lookup_elem(&tls_lengths, &thread);
	__u32 offset = 0;
	__u32 least_bytes;

	/* Else what runs is not who sends, but was interrupted: a packet that an acknowledgement lets go. */
	if (!known || !is_owned(skb))
		return 0;
	/* The smallest records of Go. */
	least_bytes = known->first_record_bytes;
	if (known->is_cut && least_bytes > RECORD_BYTES_OF_GO)
		least_bytes = RECORD_BYTES_OF_GO;
	if (bpf_ktime_get_ns() - known->at_ns >= TLS_FRESH_NS) {
		bpf_map_delete_elem(&tls_lengths, &thread);
		return 0;
	}
	for (int i = 0; i < RECORDS_LOOKED_AT; i++) {
		__u8 record[5];
		__u32 bytes;

		if (offset + sizeof(record) > packet->payload_bytes ||
		    bpf_skb_load_bytes(skb, packet->payload_offset + offset, record, sizeof(record)))
			return 0;
		bytes = ((__u32)record[3] << 8) | record[4];
		/* A handshake. */
		if (record[0] == 22)
			return 0;
		/* A packet that this thread sends for another connection has no such record. */
		if (record[0] == 23 && record[1] == 3 && bytes <= known->first_record_bytes + RECORD_OVERHEAD_MAX_BYTES &&
		    bytes >= least_bytes) {
			*said = *known;
			said->offset = offset;
			said->record_overhead_bytes =
				known->is_cut ? RECORD_OVERHEAD_BYTES : bytes + sizeof(record) - known->first_record_bytes;
			bpf_map_delete_elem(&tls_lengths, &thread);
			return 1;
		}
		offset += bytes + sizeof(record);
	}
	return 0;
}

/* The flow's response has the length that was said, if any. */
static __always_inline void take_length(struct flow *flow, struct tls_length *said)
{
	__u64 size_bytes = said->size_bytes;

	flow->size_bytes = flow->sent_bytes + said->offset + in_records(size_bytes, RECORD_OVERHEAD_BYTES);
	flow->slack_bytes = slack_of(size_bytes);
}

/* The flow's packets are those of this connection. */
static __always_inline void take_connection(struct flow *flow, struct packet *packet, struct tls_length *said)
{
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &said->connection);

	if (!http2 || http2->born_ns != said->born_ns)
		return;
	flow->has_streams = 1;
	flow->connection = said->connection;
	flow->born_ns = said->born_ns;
	http2->record_overhead_bytes = said->record_overhead_bytes;
	http2->first_seq = packet->seq + said->offset - (__u32)said->written_bytes -
			   (__u32)said->written_records * said->record_overhead_bytes;
}

/* What all responses of the flow's connection lack from this packet on. */
static __always_inline void take_streams(struct flow *flow, struct packet *packet)
{
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &flow->connection);
	__u32 end_seq;
	__s32 unsent;

	if (!http2 || http2->born_ns != flow->born_ns || http2->unsized) {
		flow->size_bytes = 0;
		flow->slack_bytes = 0;
		return;
	}
	end_seq = http2->first_seq + (__u32)http2->written_bytes +
		  (__u32)http2->written_records * http2->record_overhead_bytes;
	unsent = end_seq - packet->seq;
	if (unsent < 0)
		unsent = packet->payload_bytes;
	flow->size_bytes = flow->sent_bytes + unsent;
	flow->slack_bytes = 0;
	if (http2->left_bytes) {
		flow->size_bytes += in_records(http2->left_bytes, http2->record_overhead_bytes + FRAME_HEADER_BYTES);
		flow->slack_bytes = slack_of(http2->left_bytes);
	}
}

/* All that was sent has been acknowledged. */
static __always_inline void note_idle(struct flow *flow)
{
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &flow->connection);

	if (http2 && http2->born_ns == flow->born_ns)
		http2->is_idle = 1;
}
