// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Orders the responses of a server that knows nothing of it: every packet that leaves is given the band of its response, by what the
// response has had already (least attained service), or by what it still lacks where its head said how long it is (SRPT).
//
// Two programs on one device: `order_egress` marks packets with `skb->priority`, which selects a class of HTB, or a band of sch_prio;
// `order_ingress` sees requests and acknowledgements. Both only look: no packet is dropped, changed or held.
//
// What counts as a response: the bytes between two requests. A packet with payload from the client begins a new one exactly when
// everything that was sent has been acknowledged, so a client cannot make its download young while data is under way; and while a response
// whose length is known lacks bytes, never. UDP (QUIC) shows neither: there a pause begins a new response.
//
// Memory is bounded: least recently used flows give way. A flow that was forgotten in the middle of a response begins again as a new one
// of unknown length. Flows are made only by packets that leave, so strangers' packets cannot push them out.

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define BANDS_MAX 8
/* How much of a response's first packet is searched for its head. */
#define HEAD_BYTES 1024
/* No response is longer: what a head claims beyond is not believed. */
#define SIZE_MAX_BYTES (1ULL << 53)
/* Between two counts of SYN-ACKs, ns. */
#define WINDOW_NS 250000000ULL

/* Set before loading; the verifier removes what they rule out. */
volatile const __u32 link_header_bytes = ETH_HLEN;
volatile const __u32 reads_heads = 1;
volatile const __u32 all_ports = 0;
/* The priority of band 0; the others follow. */
volatile const __u32 first_priority = 0x50050010;
volatile const __u32 lowest_band = BANDS_MAX - 1;
/* After so long a pause a datagram begins a new response, ns. */
volatile const __u64 datagram_pause_ns = 500000000ULL;
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
	COUNT_BAND_PACKETS,
	COUNT_BAND_BYTES = COUNT_BAND_PACKETS + BANDS_MAX,
	COUNTERS = COUNT_BAND_BYTES + BANDS_MAX,
};

struct handshakes {
	__u64 window_ns;
	__u32 syn_acks;
	__u32 answered;
	/* Of the window before. */
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
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, BANDS_MAX - 1);
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

struct head {
	__u8 bytes[HEAD_BYTES];
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

/* What a packet is, as far as it matters here. */
struct packet {
	struct flow_key key;
	__u32 seq;
	__u32 ack_seq;
	__u32 payload_offset;
	__u32 payload_bytes;
	__u8 syn;
	__u8 fin;
	__u8 rst;
	__u8 ack;
};

static __always_inline int of_a_server(__u16 port)
{
	return all_ports || bpf_map_lookup_elem(&ports, &port) != 0;
}

static __always_inline void mapped(__u8 *to, __be32 address)
{
	__builtin_memset(to, 0, 10);
	to[10] = to[11] = 0xff;
	__builtin_memcpy(to + 12, &address, 4);
}

/* Reads the headers; 0 for what is not TCP or UDP of one of our ports, fragments among it. */
static __always_inline int read_packet(struct __sk_buff *skb, struct packet *packet, int leaves)
{
	__u32 offset = link_header_bytes;
	__be16 kind = skb->protocol;
	__u8 *from = leaves ? packet->key.server : packet->key.client;
	__u8 *to = leaves ? packet->key.client : packet->key.server;
	__u32 packet_bytes;

	if (kind == bpf_htons(ETH_P_8021Q) && link_header_bytes == ETH_HLEN) {
		if (bpf_skb_load_bytes(skb, offset + 2, &kind, 2))
			return 0;
		offset += 4;
	}
	if (kind == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
			return 0;
		if (ip.frag_off & bpf_htons(0x3fff))
			return 0;
		mapped(from, ip.saddr);
		mapped(to, ip.daddr);
		packet->key.protocol = ip.protocol;
		packet_bytes = offset + bpf_ntohs(ip.tot_len);
		/* A super-packet longer than 64 KB has no length here. */
		if (ip.tot_len == 0)
			packet_bytes = skb->len;
		offset += ip.ihl * 4;
	} else if (kind == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
			return 0;
		__builtin_memcpy(from, &ip.saddr, 16);
		__builtin_memcpy(to, &ip.daddr, 16);
		packet->key.protocol = ip.nexthdr;
		packet_bytes = offset + sizeof(ip) + bpf_ntohs(ip.payload_len);
		if (ip.payload_len == 0)
			packet_bytes = skb->len;
		offset += sizeof(ip);
		if (ip.nexthdr == IPPROTO_HOPOPTS) {
			/* What longer super-packets carry their length in. */
			__u8 next[2];

			if (bpf_skb_load_bytes(skb, offset, next, 2))
				return 0;
			packet->key.protocol = next[0];
			offset += 8 + next[1] * 8;
		}
	} else {
		return 0;
	}

	__u16 source, target;

	if (packet->key.protocol == IPPROTO_TCP) {
		struct tcphdr tcp;

		if (bpf_skb_load_bytes(skb, offset, &tcp, sizeof(tcp)))
			return 0;
		source = bpf_ntohs(tcp.source);
		target = bpf_ntohs(tcp.dest);
		packet->seq = bpf_ntohl(tcp.seq);
		packet->ack_seq = bpf_ntohl(tcp.ack_seq);
		packet->syn = tcp.syn;
		packet->fin = tcp.fin;
		packet->rst = tcp.rst;
		packet->ack = tcp.ack;
		offset += tcp.doff * 4;
	} else if (packet->key.protocol == IPPROTO_UDP) {
		struct udphdr udp;

		if (bpf_skb_load_bytes(skb, offset, &udp, sizeof(udp)))
			return 0;
		source = bpf_ntohs(udp.source);
		target = bpf_ntohs(udp.dest);
		offset += sizeof(udp);
	} else {
		return 0;
	}
	packet->key.server_port = leaves ? source : target;
	packet->key.client_port = leaves ? target : source;
	packet->payload_offset = offset;
	packet->payload_bytes = packet_bytes > offset ? packet_bytes - offset : 0;
	return of_a_server(packet->key.server_port);
}

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

enum { SEARCHING, IN_DIGITS, HAS_LENGTH };

const char field_name[] = "\r\ncontent-length:";
#define FIELD_NAME_BYTES (sizeof(field_name) - 1)

static long search_byte(__u32 at, void *context)
{
	struct search *search = context;
	__u32 zero = 0;
	struct head *head = bpf_map_lookup_elem(&heads, &zero);

	if (!head || at >= HEAD_BYTES || at >= search->limit)
		return 1;

	__u8 byte = head->bytes[at];
	__u32 line = search->empty_line;

	if (byte == ((line & 1) ? '\n' : '\r'))
		line++;
	else
		line = byte == '\r';
	search->empty_line = line;
	if (line == 4) {
		search->head_bytes = at + 1;
		return 1;
	}
	if (search->state == IN_DIGITS) {
		if (byte >= '0' && byte <= '9') {
			if (search->length < SIZE_MAX_BYTES / 10)
				search->length = search->length * 10 + (byte - '0');
		} else if (byte != ' ' && byte != '\t') {
			search->state = HAS_LENGTH;
		}
		return 0;
	}
	if (search->state == HAS_LENGTH)
		return 0;
	if (byte >= 'A' && byte <= 'Z')
		byte += 'a' - 'A';

	__u32 matched = search->matched;

	if (matched < FIELD_NAME_BYTES && byte == (__u8)field_name[matched])
		matched++;
	else
		matched = byte == '\r';
	if (matched == FIELD_NAME_BYTES) {
		search->state = IN_DIGITS;
		matched = 0;
	}
	search->matched = matched;
	return 0;
}

/* The length of the response that this packet begins, head included; 0 where its head does not say. */
static __noinline __u64 announced_bytes(struct __sk_buff *skb, struct packet *packet, int is_head_request)
{
	__u32 zero = 0;
	struct head *head = bpf_map_lookup_elem(&heads, &zero);
	__u32 length = packet->payload_bytes;
	struct search search = {};

	if (!head || length < 16)
		return 0;
	if (length > HEAD_BYTES)
		length = HEAD_BYTES;
	/* The verifier has to see that it is above 0 and within the buffer. */
	length -= 1;
	asm volatile("%0 &= 1023" : "+r"(length));
	length += 1;
	if (bpf_skb_load_bytes(skb, packet->payload_offset, head->bytes, length))
		return 0;
	if (head->bytes[0] != 'H' || head->bytes[1] != 'T' || head->bytes[2] != 'T' || head->bytes[3] != 'P' ||
	    head->bytes[4] != '/' || head->bytes[5] != '1')
		return 0;
	/* Interim answers are followed by another, and these two have no body. */
	if (head->bytes[9] == '1')
		return 0;
	search.limit = length;
	bpf_loop(HEAD_BYTES, search_byte, &search, 0);
	if (search.head_bytes == 0)
		search.head_bytes = length;
	if (is_head_request || (head->bytes[9] == '3' && head->bytes[10] == '0' && head->bytes[11] == '4'))
		return search.head_bytes;
	return search.state == SEARCHING ? 0 : search.head_bytes + search.length;
}

static __noinline void report(struct flow *flow, struct flow_key *key, __u32 kind, __u64 at_ns)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		count(COUNT_LOST_EVENTS, 1);
		return;
	}
	event->key = *key;
	event->at_ns = at_ns;
	event->response = flow->response;
	event->request_ns = flow->request_ns;
	event->sent_bytes = flow->sent_bytes;
	event->size_bytes = flow->size_bytes;
	event->kind = kind;
	event->band = flow->band;
	/* Nobody waits for it: the reader comes by ten times a second, which costs a packet nothing. */
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* Says once that a response is over. */
static __always_inline void report_end(struct flow *flow, struct flow_key *key, __u32 kind, __u64 at_ns)
{
	if (flow->is_reported || flow->sent_bytes == 0)
		return;
	flow->is_reported = 1;
	report(flow, key, kind, at_ns);
}

static __always_inline int is_complete(struct flow *flow)
{
	return flow->size_bytes == 0 || flow->sent_bytes >= flow->size_bytes;
}

/* The next packet with payload that leaves is the first of a new response. */
static __always_inline void begin(struct flow *flow, __u64 request_ns, int is_head)
{
	flow->sent_bytes = 0;
	flow->size_bytes = 0;
	flow->request_ns = request_ns;
	flow->acked_ns = 0;
	flow->is_reported = 0;
	flow->is_head = is_head;
	flow->band = 0;
}

static __always_inline __u32 band_of(struct flow *flow)
{
	/* Behind a length that was wrong, what was sent counts. */
	__u64 rank = flow->size_bytes > flow->sent_bytes ? flow->size_bytes - flow->sent_bytes : flow->sent_bytes;
	__u32 band = 0;

	for (__u32 i = 0; i < BANDS_MAX - 1; i++) {
		__u32 at = i;
		__u64 *cutoff = bpf_map_lookup_elem(&cutoffs, &at);

		if (cutoff && *cutoff < rank)
			band = i + 1;
	}
	return band < lowest_band ? band : lowest_band;
}

static __always_inline void mark(struct __sk_buff *skb, __u32 band)
{
	skb->priority = first_priority + band;
	count(COUNT_BAND_PACKETS + (band & (BANDS_MAX - 1)), 1);
	count(COUNT_BAND_BYTES + (band & (BANDS_MAX - 1)), skb->wire_len);
}

/* Handshakes go first, unless far more of them begin than end in a response: then they are a flood, and go last. */
static __noinline void mark_syn_ack(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct handshakes *seen = bpf_map_lookup_elem(&handshakes, &zero);
	__u64 now = bpf_ktime_get_ns();

	count(COUNT_SYN_ACKS, 1);
	if (!seen)
		return;
	if (now - seen->window_ns > WINDOW_NS) {
		/* Two processors may both do this: the second finds a window without anything, which believes. */
		__u32 begun = seen->syn_acks, answered = seen->answered;

		seen->window_ns = now;
		seen->syn_acks = 0;
		seen->answered = 0;
		seen->is_flood = begun > syn_acks_believed && begun / 4 > answered;
	}
	__sync_fetch_and_add(&seen->syn_acks, 1);
	if (seen->is_flood || (seen->syn_acks > 2 * syn_acks_believed && seen->syn_acks / 4 > seen->answered)) {
		count(COUNT_LOWERED_SYN_ACKS, 1);
		mark(skb, lowest_band);
	} else {
		mark(skb, 0);
	}
}

static __always_inline void count_answered(void)
{
	__u32 zero = 0;
	struct handshakes *seen = bpf_map_lookup_elem(&handshakes, &zero);

	if (seen)
		__sync_fetch_and_add(&seen->answered, 1);
}

/* The flow of a packet that leaves, made where there is none; its response begins with what is known of the request. */
static __always_inline struct flow *flow_of(struct packet *packet)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &packet->key);
	struct request *request;
	struct flow fresh = {};

	if (flow)
		return flow;
	request = bpf_map_lookup_elem(&requests, &packet->key);
	if (request) {
		fresh.request_ns = request->came_ns;
		fresh.is_head = request->is_head != 0;
		bpf_map_delete_elem(&requests, &packet->key);
	}
	fresh.next_seq = packet->seq;
	fresh.last_sent_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&flows, &packet->key, &fresh, BPF_ANY);
	count_answered();
	return bpf_map_lookup_elem(&flows, &packet->key);
}

static __noinline void order_payload(struct __sk_buff *skb, struct packet *packet, struct flow *flow, __u32 new_bytes)
{
	if (new_bytes == 0) {
		/* Sent again: it keeps its place. */
		count(COUNT_RESENT_PACKETS, 1);
		mark(skb, flow->band & (BANDS_MAX - 1));
		return;
	}
	if (flow->sent_bytes == 0) {
		flow->response = ((__u64)bpf_get_prandom_u32() << 32) | bpf_get_prandom_u32();
		count(COUNT_RESPONSES, 1);
		if (reads_heads && packet->key.protocol == IPPROTO_TCP)
			flow->size_bytes = announced_bytes(skb, packet, flow->is_head);
		if (flow->size_bytes)
			count(COUNT_SIZED, 1);
	}

	__u32 band = band_of(flow);
	int is_first = flow->sent_bytes == 0;

	flow->band = band;
	flow->sent_bytes += new_bytes;
	flow->last_sent_ns = bpf_ktime_get_ns();
	flow->acked_ns = 0;
	mark(skb, band);
	if (is_first)
		report(flow, &packet->key, EVENT_STARTED, flow->last_sent_ns);
}

static __always_inline void order_datagram(struct __sk_buff *skb, struct packet *packet)
{
	struct flow *flow = flow_of(packet);

	if (!flow)
		return;
	if (flow->sent_bytes && bpf_ktime_get_ns() - flow->last_sent_ns > datagram_pause_ns) {
		report_end(flow, &packet->key, EVENT_ENDED, flow->last_sent_ns);
		begin(flow, 0, 0);
	}
	order_payload(skb, packet, flow, packet->payload_bytes);
}

SEC("classifier")
int order_egress(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct flow *flow;

	if (!read_packet(skb, &packet, 1))
		return TC_ACT_UNSPEC;
	if (packet.key.protocol == IPPROTO_UDP) {
		order_datagram(skb, &packet);
		return TC_ACT_UNSPEC;
	}
	if (packet.syn) {
		mark_syn_ack(skb);
		return TC_ACT_UNSPEC;
	}
	if (packet.rst) {
		flow = bpf_map_lookup_elem(&flows, &packet.key);
		if (flow) {
			report_end(flow, &packet.key, EVENT_BROKEN, bpf_ktime_get_ns());
			bpf_map_delete_elem(&flows, &packet.key);
		}
		mark(skb, 0);
		return TC_ACT_UNSPEC;
	}
	if (packet.payload_bytes == 0 && !packet.fin) {
		mark(skb, 0);
		return TC_ACT_UNSPEC;
	}
	flow = flow_of(&packet);
	if (!flow)
		return TC_ACT_UNSPEC;

	__s32 beyond = (__s32)(packet.seq + packet.payload_bytes - flow->next_seq);
	__u32 new_bytes = beyond <= 0 ? 0 : beyond;

	if (new_bytes > packet.payload_bytes)
		new_bytes = packet.payload_bytes;
	if (packet.payload_bytes)
		order_payload(skb, &packet, flow, new_bytes);
	else
		/* Not before the bytes it ends: that would look like a loss. */
		mark(skb, flow->band & (BANDS_MAX - 1));
	if (new_bytes)
		flow->next_seq = packet.seq + packet.payload_bytes;
	if (packet.fin && !flow->is_closing) {
		flow->is_closing = 1;
		flow->next_seq = packet.seq + packet.payload_bytes + 1;
	}
	return TC_ACT_UNSPEC;
}

/* A client's packet to one of our ports that has no flow: its payload may be a request. */
static __always_inline void remember_request(struct packet *packet, int is_head)
{
	struct request fresh = { .came_ns = bpf_ktime_get_ns(), .is_head = is_head };

	/* Of a request in several packets the first counts. */
	bpf_map_update_elem(&requests, &packet->key, &fresh, BPF_NOEXIST);
}

static __always_inline int begins_with_head(struct __sk_buff *skb, struct packet *packet)
{
	__u8 method[5];

	if (!reads_heads || packet->payload_bytes < 5)
		return 0;
	if (bpf_skb_load_bytes(skb, packet->payload_offset, method, 5))
		return 0;
	return method[0] == 'H' && method[1] == 'E' && method[2] == 'A' && method[3] == 'D' && method[4] == ' ';
}

SEC("classifier")
int order_ingress(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct flow *flow;

	if (!read_packet(skb, &packet, 0) || packet.key.protocol != IPPROTO_TCP || packet.syn)
		return TC_ACT_UNSPEC;
	flow = bpf_map_lookup_elem(&flows, &packet.key);
	if (!flow) {
		if (packet.payload_bytes)
			remember_request(&packet, begins_with_head(skb, &packet));
		return TC_ACT_UNSPEC;
	}
	if (packet.rst) {
		report_end(flow, &packet.key, EVENT_BROKEN, bpf_ktime_get_ns());
		bpf_map_delete_elem(&flows, &packet.key);
		return TC_ACT_UNSPEC;
	}
	if (!packet.ack || packet.ack_seq != flow->next_seq)
		return TC_ACT_UNSPEC;
	/* All that was sent has arrived. */
	if (flow->sent_bytes && flow->acked_ns == 0)
		flow->acked_ns = bpf_ktime_get_ns();
	if (flow->sent_bytes && flow->size_bytes && is_complete(flow))
		report_end(flow, &packet.key, EVENT_ENDED, flow->acked_ns);
	if (flow->is_closing) {
		report_end(flow, &packet.key, EVENT_ENDED, flow->acked_ns);
		bpf_map_delete_elem(&flows, &packet.key);
		return TC_ACT_UNSPEC;
	}
	if (packet.payload_bytes && is_complete(flow) && flow->sent_bytes) {
		report_end(flow, &packet.key, EVENT_ENDED, flow->acked_ns);
		begin(flow, bpf_ktime_get_ns(), begins_with_head(skb, &packet));
	}
	return TC_ACT_UNSPEC;
}

char license_of_programs[] SEC("license") = "Dual MIT/GPL";
