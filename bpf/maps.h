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

/* What a server hands to its TLS library is sent at once, or not by this thread, ns. */
#define TLS_FRESH_NS 20000000ULL
/* The most that a TLS record carries, and the most that it adds to that. */
#define RECORD_BYTES 16384
#define RECORD_OVERHEAD_MAX_BYTES 64
/* What it mostly adds, at most; and in TLS 1.3. */
#define RECORD_OVERHEAD_BYTES 29
#define RECORD_OVERHEAD_BYTES_OF_1_3 22
/* The first record of Go takes so many with its overhead, the second twice as many, until they are as large as can be; none has less plain
 * text than the other number unless a write has. */
#define RECORD_FIRST_BYTES_OF_GO 1208
#define RECORDS_GROWING_OF_GO 14
#define RECORD_BYTES_OF_GO 1100
/* What a server may say to a client that has gone: GOAWAY of HTTP/2, under TLS or not. */
#define GOODBYE_BYTES 64
/* What stands in a socket counts until a response has had so many times the most that ever stood there. */
#define SOCKETS_FULL 8

/* A response may be so many times its slack longer than was said before what it has had counts. */
#define SLACKS_BEYOND 4

/* So many bytes in one band, and a connection goes up although some of it wait there. With 16 KiB the mean is 1 to 3 % shorter at no round trip
 * (0.9), but at 1 ms nearly ten times as many segments are sent again, and it is a quarter longer. */
#define HELD_BYTES (64 * 1024)

/* An acknowledgement that came later says nothing of the link. */
#define DELAY_MAX_NS 10000000000ULL

enum { MACHINE_X86_64, MACHINE_AARCH64 };

/* Set before loading; the verifier removes what they rule out. */
volatile const __u32 link_header_bytes = ETH_HLEN;
volatile const __u32 reads_heads = 1;
/* Whether lengths that servers hand to their TLS library are used; and how a process's registers lie in memory. */
volatile const __u32 reads_tls = 0;
volatile const __u32 machine = MACHINE_X86_64;
/* Whether what stands in the servers' sockets counts where a length is not known. */
volatile const __u32 reads_sockets = 0;
/* Whether packets are given their band, or only looked at. */
volatile const __u32 marks = 1;
/* Whether delays and what arrives are measured, for which device of which network namespace. */
volatile const __u32 measures = 0;
volatile const __u32 device_index = 0;
volatile const __u32 namespace_number = 0;
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

/* A connection of a TLS library: a process, and an address in it. */
struct tls_key {
	__u64 address;
	__u32 process;
	__u32 stream;
};

/* What a client's TLS session has come to (session.h), and how many bytes of its last record are still to come. */
struct session {
	__u16 left_bytes;
	__u8 step;
	/* Of a flow: what is sent now belongs to the session, and is no response. */
	__u8 is_sent;
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
	/* By how much its length may be too long, where that was read before it was encrypted; else 0. */
	__u32 slack_bytes;
	/* It has several responses at once (HTTP/2): its length is that of all that are under way on this connection. */
	__u8 has_streams;
	/* Of those, how many of known length were seen, the lowest bits. */
	__u8 sized_streams;
	/* Its socket was full during this response, so that more may follow; and: what stood in the socket counted. */
	__u8 has_filled;
	__u8 is_by_socket;
	/* The most that stood in it. */
	__u32 unsent_max_bytes;
	/* Its length was reported when it became known; and: it was counted as one of known length. */
	__u8 is_size_reported;
	__u8 is_counted;
	/* The client closed its side when it had all that was sent. */
	__u8 is_left;
	__u8 unused;
	/* The connection, and when that began: another one may have its address by now. */
	struct tls_key connection;
	__u64 born_ns;
	/* Of the packet that is timed: when it left the device, and the number behind it. */
	__u64 timed_left_ns;
	/* The same of the packet that left after it; 0: none yet. */
	__u64 timed_next_ns;
	__u32 timed_end;
	__u32 timed;
	/* Of all its responses: payload that was queued, with what was sent again, and in how many packets; what has arrived; what is
	 * acknowledged, and up to which number. */
	__u64 payload_bytes;
	__u64 delivered_bytes;
	__u64 acked_bytes;
	__u32 acked_seq;
	__u32 segments;
	/* What TCP had counted as arrived before. */
	__u32 first_delivered;
	__u32 timed_next_end;
	struct session session;
	/* All before it has arrived. */
	__u32 arrived_seq;
	/* The band of the packets before, from which number on they are in it, and up to which. */
	__u32 held_from_seq;
	__u32 held_end_seq;
	__u32 held_band;
	/* The number behind what the client had when it closed its side. */
	__u32 left_seq;
};

/* A SYN-ACK whose delay is measured. */
struct handshake {
	__u64 left_ns;
	__u32 timed;
	/* What acknowledges it. */
	__u32 ack_seq;
};

/* For how long a packet to a client was on its way, and its acknowledgement. */
struct delay {
	__u8 client[16];
	__u64 at_ns;
	__u32 delay_us;
	__u32 is_light;
};

/* A request that nothing was sent for yet. */
struct request {
	__u64 came_ns;
	/* When the client last sent payload. */
	__u64 asked_ns;
	__u32 is_head;
	struct session session;
};

enum event_kind {
	EVENT_STARTED = 1,
	EVENT_ENDED = 2,
	EVENT_BROKEN = 3,
	/* Its length has become known behind its first packet. */
	EVENT_SIZED = 4,
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
	COUNT_SIZED_BY_TLS,
	COUNT_TLS_WRITES,
	COUNT_BY_SOCKET,
	/* Payload that has arrived, payload that has left, and with the headers. */
	COUNT_DELIVERED_BYTES,
	COUNT_LEFT_PAYLOAD_BYTES,
	COUNT_LEFT_BYTES,
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

/* The largest rank of every band but the last, below 2^63. */
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

/* Where a flow is made: on the stack it would take a third of what a program and its functions may have together, 512 bytes, of which
 * older kernels count 32 at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct flow);
	__uint(max_entries, 1);
} fresh_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} delays SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct flow_key);
	__type(value, struct handshake);
	__uint(max_entries, 16384);
} timed_handshakes SEC(".maps");

/* How far the search for the length of a response is. */
struct search {
	__u64 length;
	__u32 at;
	__u32 limit;
	/* Which field's name matches, and so many bytes of it; and then: reading its digits. */
	__u32 field;
	__u32 matched;
	__u32 state;
	/* Bytes of the empty line that match; 4 at the end of the head. */
	__u32 empty_line;
	__u32 head_bytes;
	/* It has a transfer coding, which says where it ends. */
	__u32 is_coded;
	/* Of the next byte that a name must have. */
	__u32 index;
	/* A length that was said before, and one more. */
	__u64 first_length;
};

/* How far the search in a block of header fields is (HPACK). */
struct fields {
	__u64 length;
	__u32 at;
	__u32 end;
	__u32 is_interim;
	__u32 unused;
};

struct head {
	__u8 bytes[HEAD_BYTES];
	/* Here and not on the stack, where the verifier would follow every value it can have. */
	struct search search;
	struct fields fields;
	/* A thread looks at it: another one that takes its processor meanwhile leaves it alone. */
	__u32 is_busy;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct head);
	__uint(max_entries, 1);
} heads SEC(".maps");

/* The same for what is handed to a TLS library: a packet may be looked at in the middle of it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct head);
	__uint(max_entries, 1);
} tls_heads SEC(".maps");

/* What a thread has handed to its TLS library: the head of a response, or frames of a connection whose packets are not known yet. */
struct tls_length {
	/* Of the response, in plain text; 0 where that is not known. */
	__u64 size_bytes;
	__u64 at_ns;
	/* The connection, where it has several responses at once, and what had been written to it before. */
	struct tls_key connection;
	__u64 born_ns;
	__u64 written_bytes;
	__u64 written_records;
	__u32 has_streams;
	/* Plain text of its first record. */
	__u32 first_record_bytes;
	/* Its first record may be any part of it. */
	__u32 is_cut;
	/* Nothing of a body came with it: there may be none, if a HEAD was asked. */
	__u32 is_head_only;
	/* Where its first record is in the packet, and what that adds to the plain text. */
	__u32 offset;
	__u32 record_overhead_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, __u32);
	__type(value, struct tls_length);
	__uint(max_entries, 4096);
} tls_lengths SEC(".maps");

/* The last lengths that a connection's table of header fields has, and which entries those are. */
#define KNOWN_LENGTHS 8
/* Bytes of a frame's header. */
#define FRAME_HEADER_BYTES 9

/* What a server has written to a connection that speaks HTTP/2. */
struct http2 {
	__u64 born_ns;
	/* Its socket, in the kernel; 0: no packet has been seen. */
	__u64 tcp;
	/* What responses of known length lack that is not written yet. */
	__u64 left_bytes;
	/* All that is written, in plain text, and in how many records. */
	__u64 written_bytes;
	__u64 written_records;
	/* Where that begins in the packets, and what a record adds; 0: no packet has been seen. */
	__u32 first_seq;
	__u32 record_overhead_bytes;
	/* The last write: from where, how much, and what it looked like. */
	__u64 last_buffer;
	__u64 last_looks;
	__u32 last_bytes;
	/* All that was written has been acknowledged: responses that get nothing more from now on were cancelled. */
	__u32 is_idle;
	/* How often that was so. */
	__u32 generation;
	/* Values of content-length that the table of header fields has, and their entries by number. */
	__u64 lengths[KNOWN_LENGTHS];
	__u32 entries[KNOWN_LENGTHS];
	/* Entries so far. */
	__u32 entries_count;
	__u32 next_length;
	/* Responses under way of unknown length. */
	__u32 unsized;
	/* Of the frame that the next write goes on with: its stream, what it lacks, and its kind. */
	__u32 frame_stream;
	__u32 frame_left;
	__u8 frame_kind;
	__u8 frame_flags;
	/* A frame's header that the last write ended in. */
	__u8 header_has;
	__u8 header[FRAME_HEADER_BYTES];
	/* Not all blocks of header fields could be read: which entry is which is not known any more. */
	__u8 has_lost_entries;
	/* Its server cuts what it writes into records as Go does. */
	__u8 is_cut;
	/* Responses of known length so far, the lowest bits. */
	__u8 sized_streams;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct tls_key);
	__type(value, struct http2);
	__uint(max_entries, 8192);
} http2_connections SEC(".maps");

/* A response under way on one. */
struct http2_stream {
	__u64 left_bytes;
	__u32 is_sized;
	/* It counts in its connection if this is the connection's. */
	__u32 generation;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct tls_key);
	__type(value, struct http2_stream);
	__uint(max_entries, 32768);
} http2_streams SEC(".maps");

static __always_inline void count(__u32 which, __u64 amount)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &which);
	if (value)
		*value += amount;
}
