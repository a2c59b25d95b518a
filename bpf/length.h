// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// How long a response will be, where its head says so in plain text.

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
