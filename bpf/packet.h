// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// From a packet to its flow, its numbers and its payload.

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
	return bpf_map_lookup_elem(&ports, &port) != 0;
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
