// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// What of TLS belongs to the session and to no response: handshakes, tickets and alerts, told apart by the records that the client sends.
// Only the headers of records are read.

/* How far a client's session is; from ASKED on all that it sends may be a request. */
enum { NOT_TLS, SHAKING, CHANGED_CIPHER, SHAKEN, ASKED };

enum { RECORD_CHANGE_CIPHER = 20, RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_DATA = 23 };

#define RECORD_HEADER_BYTES 5
/* The last message of a handshake is shorter than this where it is not encrypted as data, and a second hello is longer. */
#define FINISHED_BYTES_MAX 120
/* An alert in TLS 1.3: two bytes, their type, and what says that they are whole. */
#define ALERT_BYTES 19
#define RECORDS_OF_CLIENT 6

/* Where the session is after a record of the client. */
static __always_inline __u32 after_record(__u32 step, __u8 kind, __u32 bytes)
{
	if (kind == RECORD_HANDSHAKE)
		return step == CHANGED_CIPHER && bytes < FINISHED_BYTES_MAX ? SHAKEN : step;
	if (kind == RECORD_CHANGE_CIPHER)
		return step == SHAKING ? CHANGED_CIPHER : step;
	if (kind == RECORD_ALERT)
		return step;
	if (kind != RECORD_DATA)
		return ASKED;
	/* In TLS 1.3 the last message of a handshake looks like data. */
	if (step != SHAKEN)
		return SHAKEN;
	return bytes == ALERT_BYTES ? step : ASKED;
}

/* The same after a packet, of which the first bytes belong to the record before; how many of the next one's do is in the bits above the
 * lowest eight. */
static __noinline __u32 after_packet(struct __sk_buff *skb, struct packet *packet, __u32 step, __u32 offset)
{
	for (int i = 0; i < RECORDS_OF_CLIENT; i++) {
		__u8 record[RECORD_HEADER_BYTES];
		__u32 bytes;

		if (offset >= packet->payload_bytes)
			return step | (offset - packet->payload_bytes) << 8;
		if (offset + sizeof(record) > packet->payload_bytes ||
		    bpf_skb_load_bytes(skb, packet->payload_offset + offset, record, sizeof(record)))
			return ASKED;
		bytes = ((__u32)record[3] << 8) | record[4];
		if (record[1] != 3 || bytes > RECORD_BYTES + RECORD_OVERHEAD_MAX_BYTES)
			return ASKED;
		step = after_record(step, record[0], bytes);
		if (step == ASKED)
			return ASKED;
		offset += bytes + sizeof(record);
	}
	return ASKED;
}

/* Whether a packet begins with a record of this kind. */
static __always_inline int begins_with_record(struct __sk_buff *skb, struct packet *packet, __u8 kind)
{
	__u8 first[2];

	if (packet->payload_bytes < RECORD_HEADER_BYTES || bpf_skb_load_bytes(skb, packet->payload_offset, first, sizeof(first)))
		return 0;
	return first[0] == kind && first[1] == 3;
}

/* The client has sent this. */
static __noinline void note_session(struct __sk_buff *skb, struct packet *packet, struct session *session)
{
	__u32 after;

	if (session->step == ASKED)
		return;
	if (session->step == NOT_TLS) {
		if (!begins_with_record(skb, packet, RECORD_HANDSHAKE))
			return;
		session->step = SHAKING;
	}
	after = after_packet(skb, packet, session->step, session->left_bytes);
	session->step = after & 0xff;
	session->left_bytes = after >> 8;
}

/* Whether a packet is an alert and nothing else: no request, and no response. */
static __noinline int is_alert(struct __sk_buff *skb, struct packet *packet)
{
	__u8 record[RECORD_HEADER_BYTES];
	__u32 bytes = packet->payload_bytes - RECORD_HEADER_BYTES;

	if (packet->payload_bytes < sizeof(record) || packet->payload_bytes > RECORD_OVERHEAD_MAX_BYTES ||
	    bpf_skb_load_bytes(skb, packet->payload_offset, record, sizeof(record)))
		return 0;
	if (record[1] != 3 || record[3] != 0 || record[4] != bytes)
		return 0;
	return record[0] == RECORD_ALERT || (record[0] == RECORD_DATA && bytes == ALERT_BYTES);
}

/* Whether what leaves before any request of the client does. */
static __always_inline int is_unasked(struct flow *flow)
{
	return flow->session.step != NOT_TLS && flow->session.step != ASKED;
}
