// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Orders the responses of a server that knows nothing of it: every packet that leaves is given the band of its response, by what the
// response has had already (least attained service), or by what it still lacks where its head said how long it is (SRPT).
//
// Two programs on one device: `order_egress` marks packets with `skb->priority`, which selects a class of HTB, or a band of sch_prio;
// `order_ingress` sees requests and acknowledgements. Both only look: no packet is dropped, changed or held.
//
// What counts as a response: the bytes between two requests. A packet with payload from the client begins a new one exactly when
// everything that was sent has been acknowledged, so a client that acknowledges only what it has cannot make its download young while data
// is under way; and while a response whose length is known lacks bytes, never. UDP (QUIC) shows neither: there a pause begins a new response.
//
// Memory is bounded: least recently used flows give way. A flow that was forgotten in the middle of a response begins again as a new one
// of unknown length. Flows of TCP are made only by packets that leave, so strangers' packets cannot push them out.

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

#include "maps.h"
#include "packet.h"
#include "length.h"
#include "http2.h"
#include "socket.h"
#include "tls.h"
#include "delay.h"
#include "session.h"
#include "band.h"

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
	if (flow->is_reported || flow->sent_bytes == 0 || flow->session.is_sent)
		return;
	flow->is_reported = 1;
	/* By now a length would be known. */
	count(COUNT_BY_SOCKET, flow->is_by_socket && !flow->is_counted);
	report(flow, key, kind, at_ns);
}

static __always_inline int is_complete(struct flow *flow)
{
	return flow->size_bytes == 0 || flow->sent_bytes + flow->slack_bytes >= flow->size_bytes;
}

/* The next packet with payload that leaves is the first of a new response. */
static __always_inline void begin(struct flow *flow)
{
	flow->sent_bytes = 0;
	flow->size_bytes = 0;
	flow->slack_bytes = 0;
	flow->request_ns = 0;
	flow->asked_ns = 0;
	flow->acked_ns = 0;
	flow->is_reported = 0;
	flow->is_head = 0;
	flow->has_filled = 0;
	flow->is_by_socket = 0;
	flow->unsent_max_bytes = 0;
	flow->is_size_reported = 0;
	flow->is_counted = 0;
	flow->session.is_sent = 0;
	flow->band = 0;
}

/* The same for a request that came before all that was sent had arrived, or although bytes were lacking. */
static __always_inline void begin_asked(struct flow *flow)
{
	__u64 asked_ns = flow->asked_ns;

	begin(flow);
	flow->request_ns = asked_ns;
	flow->asked_ns = asked_ns;
}

/* Whether a connection that is reset now has had all: a client may reset it as soon as it has what it wants. */
static __always_inline int has_all(struct flow *flow, struct packet *packet, int leaves)
{
	int is_acked = flow->acked_ns || (!leaves && packet->ack && packet->ack_seq == flow->next_seq);
	/* It went with all that there was, and its server only said goodbye. */
	int has_left = flow->is_left && flow->next_seq - flow->left_seq <= GOODBYE_BYTES;

	return is_complete(flow) && (is_acked || flow->size_bytes || flow->is_closing || has_left);
}

static __always_inline void report_reset(struct flow *flow, struct packet *packet, int leaves)
{
	__u64 now = bpf_ktime_get_ns();

	if (has_all(flow, packet, leaves))
		report_end(flow, &packet->key, EVENT_ENDED, flow->acked_ns ? flow->acked_ns : now);
	else
		report_end(flow, &packet->key, EVENT_BROKEN, now);
}

static __always_inline void mark(struct __sk_buff *skb, __u32 band)
{
	if (marks)
		skb->priority = first_priority + band;
}

/* Whether far more handshakes began than ended in a response, which may take its time: that of the window after counts as well. */
static __always_inline int is_flood(__u32 begun, __u32 answered, __u32 believed)
{
	return begun > believed && begun / 4 > answered;
}

/* Handshakes go first, unless they are a flood: then they go last. */
static __noinline void mark_syn_ack(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct handshakes *seen = bpf_map_lookup_elem(&handshakes, &zero);
	__u64 now = bpf_ktime_get_ns();

	count(COUNT_SYN_ACKS, 1);
	if (!seen)
		return;
	if (now - seen->window_ns > 2 * WINDOW_NS) {
		/* What was counted so long ago says nothing. */
		seen->syn_acks = seen->syn_acks_before = 0;
		seen->answered = seen->answered_before = 0;
	}
	if (now - seen->window_ns > WINDOW_NS) {
		/* Two processors may both do this: the second finds a window without anything, which believes. */
		seen->window_ns = now;
		seen->is_flood = is_flood(seen->syn_acks_before, seen->answered_before + seen->answered, syn_acks_believed);
		seen->syn_acks_before = seen->syn_acks;
		seen->answered_before = seen->answered;
		seen->syn_acks = 0;
		seen->answered = 0;
	}
	__sync_fetch_and_add(&seen->syn_acks, 1);
	/* So many in one window are not waited for. */
	if (seen->is_flood ||
	    is_flood(seen->syn_acks, seen->answered_before + seen->answered, 10 * syn_acks_believed)) {
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
	struct flow *fresh;
	__u32 zero = 0;

	if (flow)
		return flow;
	fresh = bpf_map_lookup_elem(&fresh_flows, &zero);
	if (!fresh)
		return NULL;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	request = bpf_map_lookup_elem(&requests, &packet->key);
	if (request) {
		fresh->request_ns = request->came_ns;
		fresh->asked_ns = request->asked_ns;
		fresh->is_head = request->is_head != 0;
		fresh->session = request->session;
		bpf_map_delete_elem(&requests, &packet->key);
	}
	fresh->next_seq = packet->seq;
	fresh->arrived_seq = packet->seq;
	fresh->held_end_seq = packet->seq;
	fresh->last_sent_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&flows, &packet->key, fresh, BPF_ANY);
	if (packet->key.protocol == IPPROTO_TCP)
		count_answered();
	return bpf_map_lookup_elem(&flows, &packet->key);
}

/* Whether a packet begins with the head of a response. */
static __always_inline int begins_response(struct __sk_buff *skb, struct packet *packet)
{
	__u8 first[8];

	if (packet->payload_bytes < 16 || bpf_skb_load_bytes(skb, packet->payload_offset, first, sizeof(first)))
		return 0;
	return first[0] == 'H' && first[1] == 'T' && first[2] == 'T' && first[3] == 'P' && first[4] == '/' && first[5] == '1';
}

/* Begins a response where the one before is known to be over only now; what the TLS library was handed is one. */
static __always_inline void begin_where_asked(struct __sk_buff *skb, struct packet *packet, struct flow *flow, int is_handed)
{
	/* Whatever the client has sent was a request. */
	if (is_handed && flow->session.step != NOT_TLS)
		flow->session.step = ASKED;
	if (flow->session.is_sent && flow->session.step == ASKED)
		begin_asked(flow);
	/* What lacks bytes and is followed by the head of a response had another length. */
	if (reads_heads && !is_complete(flow) && flow->acked_ns && flow->asked_ns > flow->last_sent_ns && begins_response(skb, packet)) {
		report_end(flow, &packet->key, EVENT_ENDED, flow->acked_ns);
		begin_asked(flow);
	}
}

static __noinline void order_payload(struct __sk_buff *skb, struct packet *packet, struct flow *flow, __u32 new_bytes)
{
	if (new_bytes == 0) {
		/* Sent again: it keeps its place. */
		count(COUNT_RESENT_PACKETS, 1);
		mark(skb, flow->band & (BANDS_MAX - 1));
		return;
	}

	struct tls_length said = {};
	/* Under TLS what belongs to the session may leave before the response, and an answer to HEAD lacks what its head says. */
	int may_begin = flow->size_bytes == 0 || (flow->slack_bytes && flow->acked_ns) || flow->has_streams;
	int is_said = reads_tls && may_begin && packet->key.protocol == IPPROTO_TCP && begins_under_tls(skb, packet, &said);

	begin_where_asked(skb, packet, flow, is_said && !said.has_streams);
	if (is_said)
		flow->has_streams = 0;
	if (is_said && said.has_streams) {
		take_connection(skb, flow, packet, &said);
	} else if (is_said && flow->size_bytes) {
		report_end(flow, &packet->key, EVENT_ENDED, flow->acked_ns);
		begin(flow);
	}
	if (flow->sent_bytes == 0) {
		flow->response = ((__u64)bpf_get_prandom_u32() << 32) | bpf_get_prandom_u32();
		flow->session.is_sent = is_unasked(flow);
		count(COUNT_RESPONSES, !flow->session.is_sent);
		if (reads_heads && packet->key.protocol == IPPROTO_TCP)
			flow->size_bytes = announced_bytes(skb, packet, flow->is_head);
		if (flow->size_bytes) {
			flow->is_counted = 1;
			count(COUNT_SIZED, 1);
		}
	}

	int is_first = flow->sent_bytes == 0;
	int was_sized = flow->size_bytes != 0;
	__u32 unsent = 0;

	if (reads_tls && flow->has_streams)
		take_streams(flow, packet);
	else if (is_said && !was_sized && said.size_bytes && !said.is_head_only)
		take_length(flow, &said);
	if (reads_sockets && flow->size_bytes == 0 && packet->key.protocol == IPPROTO_TCP)
		unsent = unsent_bytes(skb, packet, flow);
	find_band(flow, unsent);
	hold_band(flow, packet);
	/* The head alone goes as what is young: it may be all. */
	if (is_said && !was_sized && said.size_bytes && said.is_head_only)
		take_length(flow, &said);

	int is_sized = !was_sized && flow->size_bytes && !flow->is_size_reported;

	flow->is_size_reported |= flow->size_bytes != 0;

	/* In HTTP/2 it is counted once a response of known length is among those under way. */
	if (is_sized && !flow->has_streams) {
		flow->is_counted = 1;
		count(COUNT_SIZED_BY_TLS, 1);
	}
	flow->sent_bytes += new_bytes;
	flow->last_sent_ns = bpf_ktime_get_ns();
	flow->acked_ns = 0;
	/* Read back: the verifier forgets which band it was, instead of going on with each of them. */
	mark(skb, *(volatile __u8 *)&flow->band & (BANDS_MAX - 1));
	if (flow->session.is_sent)
		return;
	if (is_first)
		report(flow, &packet->key, EVENT_STARTED, flow->last_sent_ns);
	else if (is_sized)
		report(flow, &packet->key, EVENT_SIZED, flow->last_sent_ns);
}

static __always_inline void order_datagram(struct __sk_buff *skb, struct packet *packet)
{
	struct flow *flow = flow_of(packet);

	if (!flow)
		return;
	/* In a low band its packets wait here for longer, and its sender for their acknowledgements. */
	if (flow->sent_bytes && bpf_ktime_get_ns() - flow->last_sent_ns > pause_ns * (1 + flow->band)) {
		report_end(flow, &packet->key, EVENT_ENDED, flow->last_sent_ns);
		begin(flow);
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
		/* A connection of the same two ends that was never seen to end is over. */
		bpf_map_delete_elem(&flows, &packet.key);
		bpf_map_delete_elem(&requests, &packet.key);
		if (measures)
			note_syn_ack(&packet);
		mark_syn_ack(skb);
		return TC_ACT_UNSPEC;
	}
	if (packet.rst) {
		flow = bpf_map_lookup_elem(&flows, &packet.key);
		if (flow) {
			report_reset(flow, &packet, 1);
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
	if (measures && packet.payload_bytes)
		note_queued(skb, &packet, flow, new_bytes);
	if (packet.payload_bytes && !is_alert(skb, &packet))
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

static __always_inline int begins_with_head(struct __sk_buff *skb, struct packet *packet)
{
	__u8 method[5];

	if (!reads_heads || packet->payload_bytes < 5)
		return 0;
	if (bpf_skb_load_bytes(skb, packet->payload_offset, method, 5))
		return 0;
	return method[0] == 'H' && method[1] == 'E' && method[2] == 'A' && method[3] == 'D' && method[4] == ' ';
}

/* A client's packet to one of our ports that has no flow: its payload may be a request. */
static __always_inline void remember_request(struct __sk_buff *skb, struct packet *packet, int is_head)
{
	__u64 now = bpf_ktime_get_ns();
	struct request fresh = { .came_ns = now, .asked_ns = now, .is_head = is_head };
	struct request *known = bpf_map_lookup_elem(&requests, &packet->key);

	if (known)
		fresh.session = known->session;
	note_session(skb, packet, &fresh.session);
	/* Of a request in several packets the first counts. */
	if (known && now - known->asked_ns < pause_ns) {
		known->session = fresh.session;
		known->asked_ns = now;
		known->is_head |= is_head;
		return;
	}
	bpf_map_update_elem(&requests, &packet->key, &fresh, BPF_ANY);
}

/* The same where there is a flow whose next response has not begun. What came long before, like a byte that keeps a connection alive, was no
 * request. */
static __always_inline void note_request(struct flow *flow, int is_head)
{
	__u64 now = bpf_ktime_get_ns();

	if (now - flow->asked_ns > pause_ns)
		flow->request_ns = now;
	flow->asked_ns = now;
	flow->is_head |= is_head;
}

SEC("classifier")
int order_ingress(struct __sk_buff *skb)
{
	struct packet packet = {};
	struct flow *flow;

	if (!read_packet(skb, &packet, 0) || packet.key.protocol != IPPROTO_TCP || packet.syn)
		return TC_ACT_UNSPEC;
	if (measures && packet.ack)
		note_shaken(&packet);
	flow = bpf_map_lookup_elem(&flows, &packet.key);
	if (measures && packet.ack)
		note_acked(&packet, flow);
	if (!flow) {
		if (packet.payload_bytes)
			remember_request(skb, &packet, begins_with_head(skb, &packet));
		return TC_ACT_UNSPEC;
	}
	if (packet.rst) {
		/* It is not forgotten: the server's TCP may not believe it. */
		report_reset(flow, &packet, 0);
		return TC_ACT_UNSPEC;
	}
	if (packet.payload_bytes && is_alert(skb, &packet))
		packet.payload_bytes = 0;
	if (packet.payload_bytes) {
		int was_unasked = is_unasked(flow);

		note_session(skb, &packet, &flow->session);
		/* What it sent for the session was no request. */
		if (was_unasked && !is_unasked(flow))
			flow->asked_ns = 0;
		/* A request that comes while tickets are on their way, or while bytes that were announced are lacking. */
		if (flow->session.is_sent || (flow->sent_bytes && !is_complete(flow)))
			flow->asked_ns = bpf_ktime_get_ns();
	}
	if (packet.ack && (__s32)(packet.ack_seq - flow->arrived_seq) > 0)
		flow->arrived_seq = packet.ack_seq;
	if (!packet.ack || packet.ack_seq != flow->next_seq)
		return TC_ACT_UNSPEC;
	/* All that was sent has arrived. */
	if (flow->sent_bytes && flow->acked_ns == 0)
		flow->acked_ns = bpf_ktime_get_ns();
	if (flow->sent_bytes && flow->size_bytes && is_complete(flow))
		report_end(flow, &packet.key, EVENT_ENDED, flow->acked_ns);
	if (reads_tls && flow->has_streams)
		note_idle(flow);
	if (packet.fin && flow->sent_bytes && !flow->is_left) {
		flow->is_left = 1;
		flow->left_seq = flow->next_seq;
	}
	if (flow->is_closing) {
		report_end(flow, &packet.key, EVENT_ENDED, flow->acked_ns);
		bpf_map_delete_elem(&flows, &packet.key);
		return TC_ACT_UNSPEC;
	}
	if (packet.payload_bytes && flow->sent_bytes && is_complete(flow)) {
		report_end(flow, &packet.key, EVENT_ENDED, flow->acked_ns);
		begin(flow);
	}
	if (packet.payload_bytes && flow->sent_bytes == 0)
		note_request(flow, begins_with_head(skb, &packet));
	return TC_ACT_UNSPEC;
}

char license_of_programs[] SEC("license") = "Dual MIT/GPL";
