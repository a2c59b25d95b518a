// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// Which requests are alike: a number made of the method and the path of a request's first line, or of the parameters of FastCGI that say
// the same. Runs of digits count as one letter, long identifiers as another, and values of the query not at all, so that it is one number
// for requests that differ only in these. Nothing but this number is kept.

/* Of a path; what is behind that makes no difference. */
#define HEAD_BYTES 256
/* Of FastCGI's parameters, so many are looked at. */
#define PARAMETERS_MAX 96
/* Hexadecimal digits of an identifier, at least. */
#define IDENTIFIER_DIGITS_MIN 16
#define METHOD_BYTES_MAX 16

/* What is awaited of a connection: nothing; its first bytes; a record of FastCGI; the parameters that it announced. */
enum { AWAITS_NOTHING, AWAITS_FIRST, AWAITS_RECORD, AWAITS_PARAMETERS };
/* Where in a first line. */
enum { IN_METHOD, IN_PATH, IN_NAME, IN_VALUE, IS_OVER, IS_NONE };

enum { FASTCGI_VERSION = 1, FASTCGI_BEGIN = 1, FASTCGI_PARAMETERS = 4, FASTCGI_HEADER_BYTES = 8 };

/* Not known outside, so that no client can write a path that counts as another one. */
volatile const __u64 seed = 0xcbf29ce484222325ULL;

/* Always read anew, so that the verifier need not follow each way to all that may be here. */
struct head {
	__u64 hash;
	__u64 segment_hash;
	__u32 at;
	__u32 hex_digits;
	__u32 digits;
	__u32 is_hex;
	__u32 in_number;
	/* Where the texts are: the method, where it is apart from the path; the higher the rank of a path, the more it says. */
	__u32 path_rank;
	__u64 method;
	__u64 path;
	__u32 method_bytes;
	__u32 path_bytes;
	/* Whether the end of the text is that of the path. */
	__u32 is_whole;
	__u32 unused;
	__u8 bytes[HEAD_BYTES];
};

/* What is awaited of a connection; of parameters, how many bytes. */
struct reading {
	__u32 awaits;
	__u32 parameter_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct head);
	__uint(max_entries, 1);
} heads SEC(".maps");

static __always_inline void mix(volatile struct head *head, __u8 letter)
{
	head->hash = (head->hash ^ letter) * 0x100000001b3ULL;
}

static __always_inline void begin_segment(volatile struct head *head)
{
	head->segment_hash = head->hash;
	head->hex_digits = 0;
	head->digits = 0;
	head->is_hex = 1;
	head->in_number = 0;
}

static __always_inline void end_segment(volatile struct head *head)
{
	if (!head->is_hex || !head->digits || head->hex_digits < IDENTIFIER_DIGITS_MIN)
		return;
	head->hash = head->segment_hash;
	mix(head, 'X');
}

/* A run of digits is one letter. */
static __always_inline void mix_folded(volatile struct head *head, __u8 letter)
{
	if (letter < '0' || letter > '9') {
		mix(head, letter);
		head->in_number = 0;
		return;
	}
	if (!head->in_number)
		mix(head, 'N');
	head->in_number = 1;
}

static __always_inline void take_in_path(volatile struct head *head, __u8 letter)
{
	__u8 lower = letter | 0x20;

	if (letter == '/' || letter == '?') {
		end_segment(head);
		mix(head, letter);
		begin_segment(head);
		if (letter == '?')
			head->at = IN_NAME;
		return;
	}
	if (letter >= '0' && letter <= '9') {
		head->digits = 1;
		head->hex_digits++;
	} else if (lower >= 'a' && lower <= 'f') {
		head->hex_digits++;
	} else if (letter != '-') {
		head->is_hex = 0;
	}
	mix_folded(head, letter);
}

static __always_inline void take_letter(volatile struct head *head, __u8 letter)
{
	__u32 at = head->at;

	if (at == IN_METHOD) {
		if (letter == ' ')
			head->at = IN_PATH;
		else if (letter < 'A' || letter > 'Z')
			head->at = IS_NONE;
		mix(head, letter);
		begin_segment(head);
	} else if (letter <= ' ') {
		if (at == IN_PATH)
			end_segment(head);
		head->at = IS_OVER;
	} else if (at == IN_PATH) {
		take_in_path(head, letter);
	} else if (letter == '&') {
		mix(head, letter);
		head->in_number = 0;
		head->at = IN_NAME;
	} else if (at == IN_NAME) {
		if (letter == '=')
			head->at = IN_VALUE;
		else
			mix_folded(head, letter);
	}
}

/* Takes what a process has there, as far as it is looked at. */
static __always_inline void take_text(volatile struct head *head, __u64 buffer, __u32 length, __u32 most)
{
	if (length == 0)
		return;
	if (length > most)
		length = most;
	length -= 1;
	asm volatile("%0 &= 255" : "+r"(length));
	length += 1;
	if (bpf_probe_read_user((void *)head->bytes, length, (void *)buffer)) {
		head->at = IS_NONE;
		return;
	}
#pragma clang loop unroll(disable)
	for (__u32 place = 0; place < most; place++) {
		if (place >= length || head->at >= IS_OVER)
			return;
		take_letter(head, head->bytes[place]);
	}
}

static __always_inline volatile struct head *fresh_head(void)
{
	__u32 zero = 0;
	volatile struct head *head = bpf_map_lookup_elem(&heads, &zero);

	if (!head)
		return 0;
	head->hash = seed;
	head->at = IN_METHOD;
	head->path_rank = 0;
	head->method = 0;
	head->method_bytes = 0;
	head->path_bytes = 0;
	begin_segment(head);
	return head;
}

/* The number of what was found, 0 where that is no request; no text is left. */
static __always_inline __u64 number_of(volatile struct head *head)
{
	__u64 hash;
	__u32 at;

	if (head->method_bytes) {
		take_text(head, head->method, head->method_bytes, METHOD_BYTES_MAX);
		take_letter(head, ' ');
	}
	take_text(head, head->path, head->path_bytes, HEAD_BYTES);
	at = head->at;
	/* It was cut, or ends where the path does. */
	if (at == IN_PATH)
		end_segment(head);
	hash = head->hash;
	__builtin_memset((void *)head->bytes, 0, HEAD_BYTES);
	if (at == IN_METHOD || at == IS_NONE || (at != IS_OVER && !head->is_whole))
		return 0;
	hash ^= hash >> 32;
	hash *= 0x9e3779b97f4a7c15ULL;
	hash ^= hash >> 29;
	return hash ? hash : 1;
}

/* A first line in HTTP/1; one of which only the beginning is here is none. */
static __always_inline void find_line(volatile struct head *head, __u64 buffer, __u32 length)
{
	head->path = buffer;
	head->path_bytes = length;
	head->is_whole = length >= HEAD_BYTES;
}

/* One of the lengths before a parameter; moves behind it. */
static __always_inline __u32 length_of_part(__u64 *at)
{
	__u8 bytes[4] = {};

	if (bpf_probe_read_user(bytes, 1, (void *)*at))
		return 0;
	if (bytes[0] < 0x80) {
		*at += 1;
		return bytes[0];
	}
	bpf_probe_read_user(bytes, 4, (void *)*at);
	*at += 4;
	return (__u32)(bytes[0] & 0x7f) << 24 | (__u32)bytes[1] << 16 | (__u32)bytes[2] << 8 | bytes[3];
}

#define NAME_PART(a, b, c, d, e, f, g, h)                                                                                                      \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | (__u64)(g) << 48 |         \
	 (__u64)(h) << 56)

static __always_inline void take_parameter(volatile struct head *found, __u64 name, __u32 name_bytes, __u32 value_bytes)
{
	__u64 words[2] = {};
	__u32 rank = 0;

	if (name_bytes < 11 || name_bytes > 15 || !value_bytes)
		return;
	bpf_probe_read_user(words, 11, (void *)name);
	if (name_bytes == 14 && words[0] == NAME_PART('R', 'E', 'Q', 'U', 'E', 'S', 'T', '_') &&
	    words[1] == NAME_PART('M', 'E', 'T', 0, 0, 0, 0, 0)) {
		found->method = name + name_bytes;
		found->method_bytes = value_bytes;
	} else if (name_bytes == 11 && words[0] == NAME_PART('R', 'E', 'Q', 'U', 'E', 'S', 'T', '_') &&
		   words[1] == NAME_PART('U', 'R', 'I', 0, 0, 0, 0, 0)) {
		rank = 3;
	} else if (name_bytes == 11 && words[0] == NAME_PART('S', 'C', 'R', 'I', 'P', 'T', '_', 'N') &&
		   words[1] == NAME_PART('A', 'M', 'E', 0, 0, 0, 0, 0)) {
		rank = 2;
	} else if (name_bytes == 15 && words[0] == NAME_PART('S', 'C', 'R', 'I', 'P', 'T', '_', 'F') &&
		   words[1] == NAME_PART('I', 'L', 'E', 0, 0, 0, 0, 0)) {
		rank = 1;
	}
	if (rank > found->path_rank) {
		found->path_rank = rank;
		found->path = name + name_bytes;
		found->path_bytes = value_bytes;
	}
}

static __always_inline void find_parameters(volatile struct head *head, __u64 at, __u32 length)
{
	__u64 end = at + length;

#pragma clang loop unroll(disable)
	for (__u32 place = 0; place < PARAMETERS_MAX; place++) {
		__u32 name_bytes, value_bytes;

		if (at + 2 > end || (head->method_bytes && head->path_rank == 3))
			break;
		name_bytes = length_of_part(&at);
		value_bytes = length_of_part(&at);
		/* What is longer than the rest is no parameter. */
		if ((__u64)name_bytes + value_bytes > end - at)
			break;
		take_parameter(head, at, name_bytes, value_bytes);
		at += (__u64)name_bytes + value_bytes;
	}
	/* They do not say. */
	if (!head->method_bytes || head->method_bytes > METHOD_BYTES_MAX)
		head->path_bytes = 0;
	head->is_whole = 1;
}

/* Where in what was read the request is named, if it is there. */
static __always_inline void find(volatile struct head *head, struct reading *reading, __u64 buffer, __u32 length)
{
	__u32 awaits = reading->awaits;
	__u8 header[FASTCGI_HEADER_BYTES] = {};
	__u32 content;

	reading->awaits = AWAITS_NOTHING;
	if (awaits == AWAITS_PARAMETERS) {
		if (length > reading->parameter_bytes)
			length = reading->parameter_bytes;
		find_parameters(head, buffer, length);
		return;
	}
	if (length < sizeof(header) || bpf_probe_read_user(header, sizeof(header), (void *)buffer))
		return;
	if (awaits == AWAITS_FIRST) {
		if (header[0] != FASTCGI_VERSION || header[1] != FASTCGI_BEGIN) {
			find_line(head, buffer, length);
			return;
		}
		/* Some read one record after the other, some all that is there. */
		if (length <= 3 * FASTCGI_HEADER_BYTES) {
			reading->awaits = AWAITS_RECORD;
			return;
		}
		buffer += 2 * FASTCGI_HEADER_BYTES;
		length -= 2 * FASTCGI_HEADER_BYTES;
		if (bpf_probe_read_user(header, sizeof(header), (void *)buffer))
			return;
	}
	content = (__u32)header[4] << 8 | header[5];
	if (header[0] != FASTCGI_VERSION || header[1] != FASTCGI_PARAMETERS || !content) {
		if (awaits == AWAITS_RECORD)
			reading->awaits = AWAITS_RECORD;
		return;
	}
	if (awaits == AWAITS_RECORD) {
		reading->parameter_bytes = content;
		reading->awaits = AWAITS_PARAMETERS;
		return;
	}
	length -= FASTCGI_HEADER_BYTES;
	find_parameters(head, buffer + FASTCGI_HEADER_BYTES, length < content ? length : content);
}

/* What a request is like of which so much was read, 0: not known yet. */
static __always_inline __u64 kind_of_read(struct reading *reading, __u64 buffer, __u32 length)
{
	volatile struct head *head = fresh_head();

	if (!head)
		return 0;
	find(head, reading, buffer, length);
	return head->path_bytes ? number_of(head) : 0;
}
