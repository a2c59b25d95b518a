// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// How long a response will be, where its head says so in plain text.

enum { SEARCHING, BEFORE_DIGITS, IN_DIGITS, BEHIND_DIGITS, HAS_LENGTH, NO_LENGTH };

enum { CONTENT_LENGTH, TRANSFER_ENCODING };

/* In lower case, each in so many bytes. */
#define FIELD_BYTES 32
const char fields_sought[2 * FIELD_BYTES] = "\r\ncontent-length:\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
					    "\r\ntransfer-encoding:";
#define CONTENT_LENGTH_BYTES 17
#define TRANSFER_ENCODING_BYTES 20

enum { OF_PACKETS, OF_TLS };

static __always_inline struct head *head_of(__u32 whose)
{
	__u32 zero = 0;

	return whose == OF_TLS ? bpf_map_lookup_elem(&tls_heads, &zero) : bpf_map_lookup_elem(&heads, &zero);
}

/* How many of these eight bytes stand before the first that is a '\r'. */
static __always_inline __u32 bytes_before_return(__u64 bytes)
{
	__u64 other = bytes ^ 0x0d0d0d0d0d0d0d0dULL;
	/* The highest bit of each that is one, up to the first at least. */
	__u64 returns = (other - 0x0101010101010101ULL) & ~other & 0x8080808080808080ULL;
	__u32 before = 0;

	if (returns == 0)
		return 8;
	if (!(returns & 0xffffffff)) {
		before += 4;
		returns >>= 32;
	}
	if (!(returns & 0xffff)) {
		before += 2;
		returns >>= 16;
	}
	return before + !(returns & 0xff);
}

/* The next byte of a length: digits with blanks around them and nothing else, and no other number than one before. */
static __always_inline void read_digit(struct search *search, __u8 byte)
{
	__u32 state = search->state;

	if (byte >= '0' && byte <= '9') {
		if (state == BEHIND_DIGITS || search->length >= SIZE_MAX_BYTES / 10) {
			search->state = NO_LENGTH;
			return;
		}
		search->length = search->length * 10 + (byte - '0');
		search->state = IN_DIGITS;
	} else if (byte == ' ' || byte == '\t') {
		search->state = state == IN_DIGITS ? BEHIND_DIGITS : state;
	} else if (byte == '\r' && state != BEFORE_DIGITS) {
		search->state = search->first_length && search->first_length != search->length + 1 ? NO_LENGTH : HAS_LENGTH;
		search->matched = 1;
	} else {
		search->state = NO_LENGTH;
	}
}

/* A field's name has ended. */
static __always_inline void note_field(struct search *search)
{
	search->matched = 0;
	if (search->field == TRANSFER_ENCODING) {
		search->is_coded = 1;
		return;
	}
	if (search->state == NO_LENGTH)
		return;
	if (search->state == HAS_LENGTH)
		search->first_length = search->length + 1;
	search->length = 0;
	search->state = BEFORE_DIGITS;
}

static __always_inline int is_in_value(struct search *search)
{
	return search->state >= BEFORE_DIGITS && search->state <= BEHIND_DIGITS;
}

/* Looks at the next byte, or passes over the rest of a line that is none of those that matter. */
static long search_on(__u32 index, void *whose)
{
	struct head *head = head_of(*(__u32 *)whose);

	if (!head)
		return 1;

	struct search *search = &head->search;

	__u32 at = search->at;

	if (at >= HEAD_BYTES || at >= search->limit)
		return 1;
	if (search->empty_line == 0 && search->matched == 0 && !is_in_value(search)) {
		__u32 passed = bytes_before_return(*(__u64 *)&head->bytes[at]);

		if (passed) {
			search->at = at + passed;
			return 0;
		}
	}
	search->at = at + 1;

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
	if (is_in_value(search)) {
		read_digit(search, byte);
		return 0;
	}
	if (byte >= 'A' && byte <= 'Z')
		byte += 'a' - 'A';

	__u32 matched = search->matched;

	if (matched == 2)
		search->field = byte == 't' ? TRANSFER_ENCODING : CONTENT_LENGTH;
	/* Read back: where CAP_PERFMON is missing the verifier refuses an index that it knows on one path and not on another. */
	search->index = search->field * FIELD_BYTES + matched;
	if (byte == (__u8)fields_sought[*(volatile __u32 *)&search->index & (2 * FIELD_BYTES - 1)])
		matched++;
	else
		matched = byte == '\r';
	search->matched = matched;
	if (matched == (search->field == TRANSFER_ENCODING ? TRANSFER_ENCODING_BYTES : CONTENT_LENGTH_BYTES))
		note_field(search);
	return 0;
}

/* How many bytes of a head to look at: the verifier has to see that it is above 0 and within the buffer. */
static __always_inline __u32 looked_at(__u32 length)
{
	if (length > HEAD_BYTES)
		length = HEAD_BYTES;
	length -= 1;
	asm volatile("%0 &= 1023" : "+r"(length));
	return length + 1;
}

/* Whether these are the first bytes of a response in HTTP/1 that is no interim one: those are followed by another, and have no body. */
static __always_inline int is_response(struct head *head)
{
	return head->bytes[0] == 'H' && head->bytes[1] == 'T' && head->bytes[2] == 'T' && head->bytes[3] == 'P' &&
	       head->bytes[4] == '/' && head->bytes[5] == '1' && head->bytes[9] != '1';
}

/* The length of the response of which these are the first bytes, head included; 0 where its head does not say. */
static __noinline __u64 length_in(__u32 whose, __u32 length, int is_head_request)
{
	struct head *head = head_of(whose);

	if (!head || !is_response(head))
		return 0;

	struct search *search = &head->search;

	__builtin_memset(search, 0, sizeof(*search));
	search->limit = length;
	bpf_loop(HEAD_BYTES, search_on, &whose, 0);
	if (search->head_bytes == 0)
		search->head_bytes = length;
	/* These have no body. */
	if (is_head_request || (head->bytes[9] == '3' && head->bytes[10] == '0' && head->bytes[11] == '4'))
		return search->head_bytes;
	/* A number that goes on in the next packet is not known, and one beside a transfer coding counts for nothing (RFC 9112, 6.3). */
	return !search->is_coded && search->state == HAS_LENGTH ? search->head_bytes + search->length : 0;
}

/* The length of the response that this packet begins. */
static __always_inline __u64 announced_bytes(struct __sk_buff *skb, struct packet *packet, int is_head_request)
{
	struct head *head = head_of(OF_PACKETS);
	__u32 length = packet->payload_bytes;

	if (!head || length < 16)
		return 0;
	length = looked_at(length);
	if (bpf_skb_load_bytes(skb, packet->payload_offset, head->bytes, length))
		return 0;
	return length_in(OF_PACKETS, length, is_head_request);
}
