// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What a server has written to a socket and the link has not taken yet: all that is left of a response, unless the socket is full.

/* Of the kernel's structures only these; where they lie is looked up when the programs are loaded. */
struct socket {
	unsigned long flags;
} __attribute__((preserve_access_index));

typedef struct {
	int owned;
} __attribute__((preserve_access_index)) socket_lock_t;

struct sock {
	struct socket *sk_socket;
	socket_lock_t sk_lock;
} __attribute__((preserve_access_index));

struct inet_sock {
	struct sock sk;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	struct inet_sock icsk_inet;
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 write_seq;
} __attribute__((preserve_access_index));

/* The bit that a server sets who would have written more (include/linux/net.h). */
#define SOCK_NOSPACE 2

/* The packet's connection, where it is one of this host. */
static __always_inline struct tcp_sock *tcp_of(struct __sk_buff *skb)
{
	struct bpf_sock *any = skb->sk;

	if (!any)
		return 0;
	any = bpf_sk_fullsock(any);
	return any ? bpf_skc_to_tcp_sock(any) : 0;
}

/* Whether a process is at work on the connection: it sends what it has just written. */
static __always_inline int is_owned(struct __sk_buff *skb)
{
	struct tcp_sock *tcp = tcp_of(skb);

	return tcp && tcp->inet_conn.icsk_inet.sk.sk_lock.owned;
}

/* From this packet on; 0 where that cannot be seen, or does not count. */
static __always_inline __u32 unsent_bytes(struct __sk_buff *skb, struct packet *packet, struct flow *flow)
{
	struct tcp_sock *tcp = tcp_of(skb);
	struct socket *socket;
	__s32 unsent;

	if (!tcp)
		return 0;
	unsent = tcp->write_seq - packet->seq;
	socket = tcp->inet_conn.icsk_inet.sk.sk_socket;
	/* A server that has closed it adds nothing. */
	flow->has_filled = socket && (flow->has_filled || socket->flags & (1UL << SOCK_NOSPACE));
	if (unsent > 0 && unsent > flow->unsent_max_bytes)
		flow->unsent_max_bytes = unsent;
	/* It never fills it, and goes on: what it has had counts. */
	if (unsent <= 0 || flow->sent_bytes > (__u64)flow->unsent_max_bytes * SOCKETS_FULL)
		return 0;
	flow->is_by_socket = 1;
	return unsent;
}
