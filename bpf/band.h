// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Which band a connection's next packet goes to: by its rank among the cutoffs, and never before packets of its own that still wait.

/* Finds the band of a flow's next packet, and remembers it; so many bytes stand in its socket, 0: not known. */
static __always_inline void find_band(struct flow *flow, __u32 unsent_bytes)
{
	/* Behind a length that was wrong, what was sent counts. */
	__u64 rank = flow->size_bytes > flow->sent_bytes ? flow->size_bytes - flow->sent_bytes : flow->sent_bytes;
	__u64 beyond = flow->sent_bytes - flow->size_bytes;
	__u32 zero = 0;
	struct cutoffs *known = bpf_map_lookup_elem(&cutoffs, &zero);
	__u8 band = 0;

	if (!known)
		return;
	if (flow->size_bytes == 0 && unsent_bytes && !(flow->has_filled && flow->sent_bytes > unsent_bytes))
		rank = unsent_bytes;
	/* Smaller records than were thought: it is about to end. */
	if (flow->size_bytes && beyond < (__u64)flow->slack_bytes * SLACKS_BEYOND)
		rank = 1;
	for (int i = 0; i < BANDS_MAX - 1; i++) {
		__u64 below = known->ranks[i] - rank;

		/* Not a comparison: the verifier would follow both ways of each, and look at millions of instructions without CAP_PERFMON. */
		asm volatile("%0 >>= 63" : "+r"(below));
		band += below;
	}
	flow->band = band < lowest_band ? band : lowest_band;
}

/* A packet in a higher band overtakes those of its connection that wait in a lower one. The client misses these then, TCP sends some again
 * without need (4 % of all bytes at a round trip of 1 ms), and the response ends with the last of them all the same. So a connection goes up
 * only where nothing of it waits, or after so many bytes that a few that are sent again do not count. */
static __always_inline void hold_band(struct flow *flow, struct packet *packet)
{
	if (packet->key.protocol != IPPROTO_TCP)
		return;
	if (flow->band < flow->held_band && (__s32)(flow->held_end_seq - flow->arrived_seq) > 0 &&
	    packet->seq - flow->held_from_seq < HELD_BYTES)
		flow->band = flow->held_band;
	if (flow->band != flow->held_band)
		flow->held_from_seq = packet->seq;
	flow->held_band = flow->band;
	flow->held_end_seq = packet->seq + packet->payload_bytes;
}
