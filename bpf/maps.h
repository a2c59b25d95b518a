// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What the programs are told before they are loaded, what they remember, and what they tell.

#define BANDS_MAX 8
/* How much of a response's first packet is searched for its head. */
#define HEAD_BYTES 1024
/* No response is longer: what a head claims beyond is not believed. */
#define SIZE_MAX_BYTES (1ULL << 53)
/* Between two counts of SYN-ACKs, ns. */
#define WINDOW_NS 1000000000ULL

/* Set before loading; the verifier removes what they rule out. */
volatile const __u32 link_header_bytes = ETH_HLEN;
volatile const __u32 reads_heads = 1;
/* The priority of band 0; the others follow. */
volatile const __u32 first_priority = 0x50050001;
volatile const __u32 lowest_band = BANDS_MAX - 1;
/* After so long a pause a datagram of the top band begins a new response, and a client's payload a new request, ns. */
volatile const __u64 pause_ns = 500000000ULL;
/* SYN-ACKs in a window that are always believed. */
volatile const __u32 syn_acks_believed = 100;

struct flow_key {
	__u8 server[16];
	__u8 client[16];
	__u16 server_port;
	__u16 client_port;
	__u8 protocol;
	__u8 unused[3];
};

struct flow {
	/* Of the response: payload sent for the first time, and all of it with its head; 0: not known. */
	__u64 sent_bytes;
	__u64 size_bytes;
	/* When its request came, 0: before we looked; when all that was sent had last arrived; when its last packet left. */
	__u64 request_ns;
	__u64 acked_ns;
	__u64 last_sent_ns;
	__u64 response;
	/* When the client last sent payload before it. */
	__u64 asked_ns;
	/* The number behind the last byte sent, FIN included. */
	__u32 next_seq;
	__u8 band;
	__u8 is_closing;
	__u8 is_reported;
	/* The request was a HEAD: a length in the answer's head is that of another answer. */
	__u8 is_head;
};

/* A request that nothing was sent for yet. */
struct request {
	__u64 came_ns;
	/* When the client last sent payload. */
	__u64 asked_ns;
	__u64 is_head;
};

enum event_kind {
	EVENT_STARTED = 1,
	EVENT_ENDED = 2,
	EVENT_BROKEN = 3,
};

struct event {
	struct flow_key key;
	__u64 at_ns;
	__u64 response;
	__u64 request_ns;
	__u64 sent_bytes;
	__u64 size_bytes;
	__u32 kind;
	__u32 band;
};

enum counter {
	COUNT_RESPONSES,
	COUNT_SIZED,
	COUNT_RESENT_PACKETS,
	COUNT_LOST_EVENTS,
	COUNT_SYN_ACKS,
	COUNT_LOWERED_SYN_ACKS,
	COUNTERS,
};

struct handshakes {
	__u64 window_ns;
	__u32 syn_acks;
	__u32 answered;
	/* Of the window before. */
	__u32 syn_acks_before;
	__u32 answered_before;
	__u32 is_flood;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow_key);
	__type(value, struct flow);
	__uint(max_entries, 65536);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow_key);
	__type(value, struct request);
	__uint(max_entries, 16384);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u16);
	__type(value, __u8);
	__uint(max_entries, 1024);
} ports SEC(".maps");

/* The largest rank of every band but the last. */
struct cutoffs {
	__u64 ranks[BANDS_MAX - 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct cutoffs);
	__uint(max_entries, 1);
} cutoffs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct handshakes);
	__uint(max_entries, 1);
} handshakes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, COUNTERS);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

/* How far the search for the length of a response is. */
struct search {
	__u64 length;
	__u32 limit;
	/* Bytes of the field's name that match, and then: reading its digits. */
	__u32 matched;
	__u32 state;
	/* Bytes of the empty line that match; 4 at the end of the head. */
	__u32 empty_line;
	__u32 head_bytes;
};

struct head {
	__u8 bytes[HEAD_BYTES];
	/* Here and not on the stack, where the verifier would follow every value it can have. */
	struct search search;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct head);
	__uint(max_entries, 1);
} heads SEC(".maps");

static __always_inline void count(__u32 which, __u64 amount)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &which);
	if (value)
		*value += amount;
}
