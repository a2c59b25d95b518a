// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What says how much the link carries: for how long packets are on their way, from leaving the device to their acknowledgement, and how
// much has arrived. What waits before the device is not in it: that is our own order.

/* Of the kernel's structures only these; where they lie is looked up when the programs are loaded. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sk_buff {
	unsigned int len;
	unsigned char *head;
	unsigned int end;
	__u16 network_header;
} __attribute__((preserve_access_index));

struct skb_shared_info {
	unsigned short gso_segs;
} __attribute__((preserve_access_index));

/* A client with no more than so much under way has no queue of its own. */
#define LIGHT_BYTES 6000
/* For so long clients wait for a second packet at least, with a reserve: Linux for 40 ms. */
#define LONE_NS 20000000

enum { NOT_TIMED, TIMED_WAITS, TIMED_HAS_LEFT, TIMED_AGAIN };

static __always_inline void tell_delay(struct flow_key *key, __u64 left_ns, int is_light)
{
	__u64 now = bpf_ktime_get_ns();
	struct delay *delay;

	if (now - left_ns > DELAY_MAX_NS)
		return;
	delay = bpf_ringbuf_reserve(&delays, sizeof(*delay), 0);
	if (!delay) {
		count(COUNT_LOST_EVENTS, 1);
		return;
	}
	__builtin_memcpy(delay->client, key->client, 16);
	delay->at_ns = now;
	delay->delay_us = (now - left_ns) / 1000;
	delay->is_light = is_light;
	bpf_ringbuf_submit(delay, BPF_RB_NO_WAKEUP);
}

/* Counts what has arrived of a flow up to so many bytes. */
static __always_inline void count_delivered(struct flow *flow, __u64 delivered_bytes)
{
	if (delivered_bytes > flow->payload_bytes)
		delivered_bytes = flow->payload_bytes;
	if (delivered_bytes <= flow->delivered_bytes)
		return;
	count(COUNT_DELIVERED_BYTES, delivered_bytes - flow->delivered_bytes);
	flow->delivered_bytes = delivered_bytes;
}

/* A packet of a response goes to the device's queue; TCP knows what has arrived although something before it was lost. */
static __noinline int note_queued(struct __sk_buff *skb, struct packet *packet, struct flow *flow, __u32 new_bytes)
{
	struct bpf_sock *any = skb->sk;
	struct bpf_tcp_sock *tcp;
	__u32 segments = skb->gso_segs ?: 1;

	if (!flow)
		return 0;
	if (new_bytes == 0)
		/* Of what is sent again, no acknowledgement says which one arrived. */
		flow->timed = NOT_TIMED;
	else if (flow->timed == NOT_TIMED) {
		flow->timed_end = packet->seq + packet->payload_bytes;
		flow->timed = TIMED_WAITS;
	}
	if (flow->segments == 0)
		flow->acked_seq = packet->seq;
	if (any)
		any = bpf_sk_fullsock(any);
	tcp = any ? bpf_tcp_sock(any) : 0;
	if (tcp && flow->segments == 0)
		flow->first_delivered = tcp->delivered;
	else if (tcp)
		count_delivered(flow, (__u64)(tcp->delivered - flow->first_delivered) * (flow->payload_bytes / flow->segments));
	flow->segments += segments;
	flow->payload_bytes += packet->payload_bytes;
	return 0;
}

/* An acknowledgement has come, which may be an old one. */
static __noinline int note_acked(struct packet *packet, struct flow *flow)
{
	if (!flow || flow->segments == 0)
		return 0;
	__u32 under_way = flow->next_seq - flow->acked_seq;
	__u32 advance = packet->ack_seq - flow->acked_seq;

	/* An old one, or one of what was never sent. */
	if (advance == 0 || advance > under_way)
		return 0;
	flow->acked_bytes += advance;
	flow->acked_seq = packet->ack_seq;
	count_delivered(flow, flow->acked_bytes);
	if (flow->timed == TIMED_HAS_LEFT && (__s32)(packet->ack_seq - flow->timed_end) >= 0) {
		__u64 left_ns = flow->timed_left_ns, next_ns = flow->timed_next_ns;

		flow->timed = NOT_TIMED;
		/* Clients take their time to acknowledge a lone packet, and none for the second: it has to be in the acknowledgement, or one of
		 * them has to have come before that time was over. */
		if (next_ns && (__s32)(packet->ack_seq - flow->timed_next_end) >= 0)
			left_ns = next_ns;
		else if ((next_ns ? next_ns : bpf_ktime_get_ns()) - left_ns > LONE_NS)
			return 0;
		tell_delay(&packet->key, left_ns, under_way <= LIGHT_BYTES);
	}
	return 0;
}

/* A handshake: the first delay of its client, before it can have a queue. */
static __noinline int note_syn_ack(struct packet *packet)
{
	struct handshake fresh = { .timed = TIMED_WAITS, .ack_seq = packet->seq + 1 };
	struct handshake *known = bpf_map_lookup_elem(&timed_handshakes, &packet->key);

	if (known)
		known->timed = TIMED_AGAIN;
	else
		bpf_map_update_elem(&timed_handshakes, &packet->key, &fresh, BPF_ANY);
	return 0;
}

static __noinline int note_shaken(struct packet *packet)
{
	struct handshake *known = bpf_map_lookup_elem(&timed_handshakes, &packet->key);

	/* Anyone can send the rest. */
	if (!known || packet->ack_seq != known->ack_seq)
		return 0;
	if (known->timed == TIMED_HAS_LEFT)
		tell_delay(&packet->key, known->left_ns, 1);
	bpf_map_delete_elem(&timed_handshakes, &packet->key);
	return 0;
}

/* The two ends, the number behind the last byte and the payload of a packet on the device; 0: it is none of ours. */
static __always_inline int read_leaving(struct sk_buff *skb, struct flow_key *key, __u32 *end, __u32 *payload_bytes, int *is_syn)
{
	void *at = skb->head + skb->network_header;
	struct tcphdr tcp;
	__u32 header_bytes, packet_bytes;
	__u8 version = 0;

	/* Behind a tag of a VLAN the protocol is the tag's. */
	if (bpf_probe_read_kernel(&version, 1, at))
		return 0;
	if (version >> 4 == 4) {
		struct iphdr ip;

		if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.protocol != IPPROTO_TCP)
			return 0;
		mapped(key->server, ip.saddr);
		mapped(key->client, ip.daddr);
		header_bytes = ip.ihl * 4;
		packet_bytes = bpf_ntohs(ip.tot_len);
	} else if (version >> 4 == 6) {
		struct ipv6hdr ip;

		if (bpf_probe_read_kernel(&ip, sizeof(ip), at) || ip.nexthdr != IPPROTO_TCP)
			return 0;
		__builtin_memcpy(key->server, &ip.saddr, 16);
		__builtin_memcpy(key->client, &ip.daddr, 16);
		header_bytes = sizeof(ip);
		packet_bytes = sizeof(ip) + bpf_ntohs(ip.payload_len);
	} else {
		return 0;
	}
	if (bpf_probe_read_kernel(&tcp, sizeof(tcp), at + header_bytes))
		return 0;
	header_bytes += tcp.doff * 4;
	key->server_port = bpf_ntohs(tcp.source);
	key->client_port = bpf_ntohs(tcp.dest);
	key->protocol = IPPROTO_TCP;
	if (packet_bytes < header_bytes)
		return 0;
	*payload_bytes = packet_bytes - header_bytes;
	*end = bpf_ntohl(tcp.seq) + *payload_bytes;
	*is_syn = tcp.syn;
	return of_a_server(key->server_port);
}

/* A packet leaves the device, behind its queue. */
SEC("tp_btf/net_dev_start_xmit")
int note_leaving(__u64 *arguments)
{
	struct sk_buff *skb = (struct sk_buff *)arguments[0];
	struct net_device *device = (struct net_device *)arguments[1];
	struct flow_key key = {};
	__u32 end = 0, payload_bytes = 0;
	int is_syn = 0;
	__u16 segments = 0;
	struct flow *flow;

	if ((__u32)device->ifindex != device_index || device->nd_net.net->ns.inum != namespace_number)
		return 0;
	if (!read_leaving(skb, &key, &end, &payload_bytes, &is_syn))
		return 0;
	if (is_syn) {
		struct handshake *known = bpf_map_lookup_elem(&timed_handshakes, &key);

		if (known && known->timed == TIMED_WAITS) {
			known->left_ns = bpf_ktime_get_ns();
			known->timed = TIMED_HAS_LEFT;
		}
		return 0;
	}
	if (payload_bytes == 0)
		return 0;

	struct skb_shared_info *shared = (void *)(skb->head + skb->end);

	bpf_probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	count(COUNT_LEFT_PAYLOAD_BYTES, payload_bytes);
	count(COUNT_LEFT_BYTES, skb->len + (segments > 1 ? (__u64)(segments - 1) * (skb->len - payload_bytes) : 0));
	flow = bpf_map_lookup_elem(&flows, &key);
	if (flow && flow->timed == TIMED_WAITS && flow->timed_end == end) {
		flow->timed_left_ns = bpf_ktime_get_ns();
		flow->timed_next_ns = 0;
		flow->timed = TIMED_HAS_LEFT;
	} else if (flow && flow->timed == TIMED_HAS_LEFT && !flow->timed_next_ns && (__s32)(end - flow->timed_end) > 0) {
		flow->timed_next_end = end;
		flow->timed_next_ns = bpf_ktime_get_ns();
	}
	return 0;
}
