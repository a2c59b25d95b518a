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
	__u64 on_x86_64 = which == 1 ? all[14] : which == 2 ? all[13] : all[12];

	return machine == MACHINE_AARCH64 ? on_aarch64 : on_x86_64;
}

static __always_inline __u64 argument_of_go(void *registers, int which)
{
	volatile __u64 *all = registers;
	__u64 on_aarch64 = all[which - 1];
	__u64 on_x86_64 = which == 1 ? all[10] : which == 2 ? all[5] : all[11];

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

/* Behind all that is written. */
static __always_inline __u32 end_seq(struct http2 *http2)
{
	return http2->first_seq + (__u32)http2->written_bytes + (__u32)http2->written_records * http2->record_overhead_bytes;
}

/* What so many bytes look like: their first and their last ones. */
static __always_inline __u64 looks_of(__u64 buffer, __u32 bytes)
{
	__u64 first[4] = {};
	__u64 last[4] = {};
	__u64 looks = bytes;

	if (bytes >= sizeof(first)) {
		bpf_probe_read_user(first, sizeof(first), (void *)buffer);
		bpf_probe_read_user(last, sizeof(last), (void *)(buffer + bytes - sizeof(last)));
	} else if (bytes >= FRAME_HEADER_BYTES) {
		bpf_probe_read_user(first, FRAME_HEADER_BYTES, (void *)buffer);
	}
	for (int i = 0; i < 4; i++)
		looks = (looks ^ first[i] ^ (last[i] << 7 | last[i] >> 57)) * 0x9e3779b97f4a7c15ULL;
	return looks;
}

/* How much of this write the server has handed over before: what its socket did not take it hands over again, whole records of it. A server
 * whose library writes into memory hands over what is new, maybe from the same place, before its socket has all. */
static __always_inline __u32 repeated_bytes(struct http2 *http2, __u64 buffer, __u32 bytes)
{
	__u32 record_bytes = RECORD_BYTES + http2->record_overhead_bytes;
	__u32 last_begin, lacks;
	struct tcp_sock *tcp = (struct tcp_sock *)http2->tcp;
	__u32 write_seq;

	/* It goes on behind what was taken. */
	if (buffer < http2->last_buffer || buffer >= http2->last_buffer + http2->last_bytes)
		return 0;
	if (!tcp || bpf_probe_read_kernel(&write_seq, sizeof(write_seq), __builtin_preserve_access_index(&tcp->write_seq)))
		return 0;
	lacks = end_seq(http2) - write_seq;
	if ((__s32)lacks <= 0)
		return 0;
	/* The one from which it goes on is the first that is not whole in the socket. */
	lacks = (lacks + record_bytes - 1) / record_bytes * RECORD_BYTES;
	last_begin = http2->last_bytes - (__u32)(buffer - http2->last_buffer);
	if (lacks > last_begin)
		lacks = last_begin;
	if (buffer != http2->last_buffer)
		return buffer == http2->last_buffer + http2->last_bytes - lacks ? last_begin : 0;
	return bytes >= last_begin && looks_of(buffer, last_begin) == http2->last_looks ? last_begin : 0;
}

static __always_inline void read_http2(struct http2 *http2, struct tls_length *said, __u64 buffer, __u32 bytes)
{
	/* A write of Go takes all. */
	__u32 repeated = said->is_cut ? 0 : repeated_bytes(http2, buffer, bytes);

	http2->last_buffer = buffer;
	http2->last_bytes = bytes;
	http2->last_looks = looks_of(buffer, bytes);
	http2->is_cut = said->is_cut;
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

static __always_inline void read_any(struct head *head, struct tls_length *said, __u64 buffer, __u64 bytes)
{
	struct tls_key *key = &said->connection;
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, key);
	struct http2 fresh = {};
	__u32 length;

	/* GnuTLS is told so to go on with what it has. */
	if (bytes == 0)
		return;
	/* In the middle of a frame, or of what comes again, its first bytes are anything. */
	if (http2 && (http2->frame_left || http2->header_has || buffer == http2->last_buffer)) {
		read_http2(http2, said, buffer, bytes);
		return;
	}
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
		read_http2(http2, said, buffer, bytes);
}

/* What a server hands over to one of its connections. */
static __always_inline int read_write(__u64 connection, __u64 buffer, __u64 bytes, int is_cut)
{
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
	read_any(head, &said, buffer, bytes);
	head->is_busy = 0;
	return 0;
}

/* SSL_write(ssl, buffer, bytes), SSL_write_ex(ssl, buffer, bytes, written), gnutls_record_send(session, buffer, bytes). The first has an
 * int, and anything above it. */
SEC("uprobe")
int tls_write(void *registers)
{
	return read_write(argument(registers, 1), argument(registers, 2), (__u32)argument(registers, 3), 0);
}

/* (*tls.Conn).Write(buffer) of Go, which begins with small records. */
SEC("uprobe")
int tls_write_of_go(void *registers)
{
	return read_write(argument_of_go(registers, 1), argument_of_go(registers, 2), argument_of_go(registers, 3), 1);
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

/* Whether a record may add so much to its plain text: TLS 1.3, or 1.2 with ciphers that need no padding; others add more. */
static __always_inline int is_overhead(__u32 bytes, int is_cut)
{
	if (is_cut && (__s32)bytes < 16)
		return 1;
	return bytes == 16 || bytes == 17 || bytes == 24 || (bytes >= 32 && bytes <= RECORD_OVERHEAD_MAX_BYTES);
}

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
		if (record[0] == 23 && record[1] == 3 && bytes >= least_bytes &&
		    is_overhead(bytes - known->first_record_bytes, known->is_cut)) {
			*said = *known;
			said->offset = offset;
			/* Of a record that is a part of what was handed over it is not known. */
			if (known->first_record_bytes <= least_bytes)
				said->record_overhead_bytes = bytes + sizeof(record) - known->first_record_bytes;
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
static __always_inline void take_connection(struct __sk_buff *skb, struct flow *flow, struct packet *packet, struct tls_length *said)
{
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &said->connection);

	if (!http2 || http2->born_ns != said->born_ns)
		return;
	http2->tcp = (__u64)tcp_of(skb);
	flow->has_streams = 1;
	/* Go writes all that it is told to, once: where it began and what a record adds holds on. */
	if (said->is_cut && flow->born_ns == said->born_ns && http2->record_overhead_bytes)
		return;
	if (flow->born_ns != said->born_ns)
		flow->sized_streams = 0;
	flow->connection = said->connection;
	flow->born_ns = said->born_ns;
	http2->record_overhead_bytes = said->record_overhead_bytes ? said->record_overhead_bytes : RECORD_OVERHEAD_BYTES_OF_1_3;
	http2->first_seq = packet->seq + said->offset - (__u32)said->written_bytes -
			   (__u32)said->written_records * http2->record_overhead_bytes;
}

/* What all responses of the flow's connection lack from this packet on. */
static __always_inline void take_streams(struct flow *flow, struct packet *packet)
{
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &flow->connection);
	__s32 unsent;

	/* All that are under way count as one. */
	if (http2 && http2->born_ns == flow->born_ns && http2->sized_streams != flow->sized_streams) {
		flow->sized_streams = http2->sized_streams;
		count(COUNT_SIZED_BY_TLS, !flow->is_counted && !flow->session.is_sent);
		flow->is_counted = 1;
	}
	if (!http2 || http2->born_ns != flow->born_ns || http2->unsized) {
		flow->size_bytes = 0;
		flow->slack_bytes = 0;
		return;
	}
	unsent = end_seq(http2) - packet->seq;
	if (unsent < 0)
		unsent = packet->payload_bytes;
	flow->size_bytes = flow->sent_bytes + unsent;
	/* A server in Go may be told to make no small records. */
	flow->slack_bytes = http2->is_cut ? RECORDS_GROWING_OF_GO * http2->record_overhead_bytes : 0;
	if (http2->left_bytes) {
		flow->size_bytes += in_records(http2->left_bytes, http2->record_overhead_bytes + FRAME_HEADER_BYTES);
		flow->slack_bytes += slack_of(http2->left_bytes);
	}
}

/* All that was sent has been acknowledged. */
static __always_inline void note_idle(struct flow *flow)
{
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &flow->connection);

	if (http2 && http2->born_ns == flow->born_ns)
		http2->is_idle = 1;
}
