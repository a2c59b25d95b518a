// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0
//
// How much the responses under way on a connection in HTTP/2 lack: from the frames that a server hands to its TLS library (RFC 9113), and from
// content-length in their header fields (RFC 7541). A connection is followed from its first frame, SETTINGS, on.
//
// A client that cancels a response is not seen here. What it lacked counts until the client has acknowledged all that was sent; from then on a
// response counts again when it gets more.

enum frame_kind { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_RST_STREAM = 3, FRAME_SETTINGS = 4, FRAME_PUSH_PROMISE = 5, FRAME_CONTINUATION = 9 };
enum frame_flag { FLAG_END_STREAM = 0x1, FLAG_PADDED = 0x8, FLAG_PRIORITY = 0x20 };
/* Frames of one write, and header fields of one block, that are looked at. */
#define FRAMES_MAX 2048
#define FIELDS_MAX 96
/* Of the static table (RFC 7541, appendix A). */
#define FIELD_CONTENT_LENGTH 28
#define FIELD_STATUS 8
#define STATIC_FIELDS 61

/* One write, and how far it has been read. */
struct http2_write {
	struct tls_key key;
	__u64 buffer;
	__u32 bytes;
	__u32 at;
};

/* No number. */
#define NONE (~0ULL)

static __always_inline __u32 next_byte(struct head *head)
{
	__u32 at = head->fields.at++;

	asm volatile("%0 &= 1023" : "+r"(at));
	return head->bytes[at];
}

/* These functions are not static: so the verifier reads each once, and not with all that comes before it. */

/* A number that begins with these bits (RFC 7541, 5.1). */
__noinline __u32 number_of(struct head *head, __u32 first, __u32 mask)
{
	__u32 value = first & mask;

	if (!head || value < mask)
		return value;
	for (int i = 0; i < 3; i++) {
		__u32 next = next_byte(head);

		value += (next & 0x7f) << (7 * i);
		if (!(next & 0x80))
			break;
	}
	return value;
}

/* A number in so many digits. */
__noinline __u64 plain_digits(struct head *head, __u32 bytes)
{
	__u64 value = 0;

	if (!head || bytes == 0 || bytes > 12)
		return NONE;
	for (__u32 i = 0; i < 12; i++) {
		__u32 digit;

		if (i >= bytes)
			break;
		digit = next_byte(head) - '0';
		if (digit > 9)
			return NONE;
		value = value * 10 + digit;
	}
	return value;
}

/* The same in so many bytes of Huffman's code: 0 to 2 have five bits, the others six; it ends in ones. */
__noinline __u64 coded_digits(struct head *head, __u32 bytes)
{
	__u64 bits = 0;
	__u64 value = 0;
	__u32 left = bytes * 8;

	if (!head || bytes == 0 || bytes > 8)
		return NONE;
	for (__u32 i = 0; i < 8; i++)
		bits = bits << 8 | (i < bytes ? next_byte(head) : 0xff);
	for (int i = 0; i < 12; i++) {
		__u32 five = bits >> 59;
		__u32 six = bits >> 58;

		if (left >= 5 && five <= 2) {
			value = value * 10 + five;
			bits = bits << 5 | 0x1f;
			left -= 5;
		} else if (left >= 6 && six >= 0x19 && six <= 0x1f) {
			value = value * 10 + six - 0x19 + 3;
			bits = bits << 6 | 0x3f;
			left -= 6;
		} else {
			break;
		}
	}
	return left < 8 && bits == ~0ULL ? value : NONE;
}

/* The length that the connection's table has in this entry, the newest being 0. */
__noinline __u64 known_length(struct http2 *http2, __u32 age)
{
	__u64 value = NONE;
	__u32 entry;

	if (!http2 || http2->has_lost_entries)
		return NONE;
	entry = http2->entries_count - age;
	for (int i = 0; i < KNOWN_LENGTHS; i++)
		if (http2->entries[i] == entry && entry != 0)
			value = http2->lengths[i];
	return value;
}

static __always_inline void keep_length(struct http2 *http2, __u64 value)
{
	__u32 at = http2->next_length++ & (KNOWN_LENGTHS - 1);

	http2->lengths[at] = value;
	http2->entries[at] = http2->entries_count;
}

/* Reads one header field. */
static long read_field(__u32 index, void *context)
{
	struct tls_key *key = context;
	struct head *head = head_of(OF_TLS);
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, key);
	__u64 value = NONE;
	__u32 first, name, string, bytes, begin, is_entry;

	if (!head || !http2 || head->fields.at >= head->fields.end)
		return 1;
	first = next_byte(head);
	if (first & 0x80) {
		name = number_of(head, first, 0x7f);
		if (name > STATIC_FIELDS)
			value = known_length(http2, name - STATIC_FIELDS - 1);
		if (value != NONE)
			head->fields.length = value;
		return 0;
	}
	if (first & 0x20 && !(first & 0x40)) {
		/* The size of the table. */
		number_of(head, first, 0x1f);
		return 0;
	}
	is_entry = first & 0x40;
	name = number_of(head, first, is_entry ? 0x3f : 0x0f);
	if (name == 0)
		head->fields.at += number_of(head, next_byte(head), 0x7f);
	string = next_byte(head);
	bytes = number_of(head, string, 0x7f);
	begin = head->fields.at;
	if (name == FIELD_CONTENT_LENGTH || (name > STATIC_FIELDS && known_length(http2, name - STATIC_FIELDS - 1) != NONE)) {
		if (begin + bytes <= head->fields.end)
			value = string & 0x80 ? coded_digits(head, bytes) : plain_digits(head, bytes);
		head->fields.length = value;
	} else if (name == FIELD_STATUS && index == 0) {
		/* 1xx is followed by another. */
		first = next_byte(head);
		head->fields.is_interim = string & 0x80 ? first >> 3 == 1 : first == '1';
	}
	head->fields.at = begin + bytes;
	if (is_entry) {
		http2->entries_count++;
		if (value != NONE)
			keep_length(http2, value);
	}
	return 0;
}

static __always_inline struct http2_stream *stream_of(struct http2_write *write, __u32 number)
{
	struct tls_key key = write->key;

	key.stream = number;
	return bpf_map_lookup_elem(&http2_streams, &key);
}

static __always_inline void add_stream(struct http2 *http2, struct http2_stream *stream)
{
	stream->generation = http2->generation;
	if (stream->is_sized)
		http2->left_bytes += stream->left_bytes;
	else
		http2->unsized++;
}

static __always_inline void take_from(__u64 *all, __u64 amount)
{
	*all -= amount < *all ? amount : *all;
}

/* A response gets no more. */
static __noinline void close_stream(struct http2 *http2, struct http2_write *write, __u32 number)
{
	struct http2_stream *stream = stream_of(write, number);
	struct tls_key key = write->key;

	if (!stream)
		return;
	if (stream->generation == http2->generation) {
		if (stream->is_sized)
			take_from(&http2->left_bytes, stream->left_bytes);
		else
			http2->unsized -= http2->unsized > 0;
	}
	key.stream = number;
	bpf_map_delete_elem(&http2_streams, &key);
}

/* A response begins whose fields stand in this write, in so many bytes from here. */
static __noinline void open_stream(struct http2 *http2, struct http2_write *write, __u32 bytes, __u32 number)
{
	struct head *head = head_of(OF_TLS);
	struct http2_stream fresh = {};
	struct tls_key key = write->key;

	if (!head)
		return;
	head->fields.at = 0;
	head->fields.end = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;
	head->fields.length = NONE;
	head->fields.is_interim = 0;
	if (bytes > 0 && bytes < 0x7fffffff) {
		bytes = looked_at(bytes);
		if (bpf_probe_read_user(head->bytes, bytes, (void *)(write->buffer + write->at)))
			head->fields.end = 0;
	}
	if (bytes != http2->frame_left)
		http2->has_lost_entries = 1;
	if (http2->frame_flags & FLAG_PADDED) {
		__u32 padding = next_byte(head);

		head->fields.end -= padding < head->fields.end ? padding : head->fields.end;
	}
	if (http2->frame_flags & FLAG_PRIORITY)
		head->fields.at += 5;
	bpf_loop(FIELDS_MAX, read_field, &write->key, 0);
	if (head->fields.at != head->fields.end)
		http2->has_lost_entries = 1;
	close_stream(http2, write, number);
	if (http2->frame_flags & FLAG_END_STREAM || head->fields.is_interim)
		return;
	key.stream = number;
	fresh.is_sized = head->fields.length != NONE;
	if (fresh.is_sized)
		fresh.left_bytes = head->fields.length;
	http2->sized_streams += fresh.is_sized;
	add_stream(http2, &fresh);
	bpf_map_update_elem(&http2_streams, &key, &fresh, BPF_ANY);
}

/* A response gets so many bytes. */
static __always_inline void pass_data(struct http2 *http2, struct http2_write *write, __u32 bytes)
{
	struct http2_stream *stream = stream_of(write, http2->frame_stream);
	__u64 passed = bytes;

	if (!stream)
		return;
	if (stream->generation != http2->generation)
		add_stream(http2, stream);
	if (passed > stream->left_bytes)
		passed = stream->left_bytes;
	stream->left_bytes -= passed;
	if (stream->is_sized)
		take_from(&http2->left_bytes, passed);
}

static long read_header_byte(__u32 index, void *context)
{
	struct http2_write *write = context;
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &write->key);
	__u32 at;

	if (!http2 || write->at >= write->bytes)
		return 1;
	at = http2->header_has;
	if (at >= FRAME_HEADER_BYTES || bpf_probe_read_user(&http2->header[at], 1, (void *)(write->buffer + write->at)))
		return 1;
	write->at++;
	http2->header_has = at + 1;
	return at + 1 == FRAME_HEADER_BYTES;
}

/* Reads a frame's header, or what this write has of it; whether it is there. */
static __always_inline int read_header(struct http2 *http2, struct http2_write *write)
{
	__u32 has = write->bytes - write->at;

	if (http2->header_has == 0 && has >= FRAME_HEADER_BYTES) {
		if (bpf_probe_read_user(http2->header, FRAME_HEADER_BYTES, (void *)(write->buffer + write->at)))
			return 0;
		write->at += FRAME_HEADER_BYTES;
	} else {
		bpf_loop(FRAME_HEADER_BYTES, read_header_byte, write, 0);
		if (http2->header_has != FRAME_HEADER_BYTES)
			return 0;
		http2->header_has = 0;
	}
	http2->frame_left = (__u32)http2->header[0] << 16 | (__u32)http2->header[1] << 8 | http2->header[2];
	http2->frame_kind = http2->header[3];
	http2->frame_flags = http2->header[4];
	http2->frame_stream = ((__u32)http2->header[5] << 24 | (__u32)http2->header[6] << 16 |
			       (__u32)http2->header[7] << 8 | http2->header[8]) & 0x7fffffff;
	return 1;
}

/* Reads one frame, or what this write has of it. */
static long read_frame(__u32 index, void *context)
{
	struct http2_write *write = context;
	struct http2 *http2 = bpf_map_lookup_elem(&http2_connections, &write->key);
	int begins = 0;
	__u32 bytes;

	if (!http2)
		return 1;
	if (http2->frame_left == 0) {
		if (!read_header(http2, write))
			return 1;
		begins = 1;
	}
	bytes = write->bytes - write->at;
	if (bytes > http2->frame_left)
		bytes = http2->frame_left;
	if (http2->frame_kind == FRAME_DATA)
		pass_data(http2, write, bytes);
	if (begins && http2->frame_kind == FRAME_HEADERS)
		open_stream(http2, write, bytes, http2->frame_stream);
	if (http2->frame_kind == FRAME_PUSH_PROMISE || http2->frame_kind == FRAME_CONTINUATION)
		http2->has_lost_entries = 1;
	write->at += bytes;
	http2->frame_left -= bytes;
	if (http2->frame_left == 0 && (http2->frame_kind == FRAME_RST_STREAM ||
				       (http2->frame_kind == FRAME_DATA && http2->frame_flags & FLAG_END_STREAM)))
		close_stream(http2, write, http2->frame_stream);
	return write->at >= write->bytes;
}

/* In how many records so many bytes are written. */
static __always_inline __u32 records_of(struct http2 *http2, __u32 bytes)
{
	__u32 overhead_bytes = http2->record_overhead_bytes ? http2->record_overhead_bytes : RECORD_OVERHEAD_BYTES_OF_1_3;
	__u32 first_bytes = RECORD_FIRST_BYTES_OF_GO - overhead_bytes;
	__u32 records = 0;

	if (http2->is_cut) {
		for (__u32 i = 0; i < RECORDS_GROWING_OF_GO; i++) {
			__u64 record_bytes = first_bytes * (http2->written_records + records + 1);

			if (bytes == 0 || record_bytes >= RECORD_BYTES)
				break;
			bytes -= record_bytes < bytes ? record_bytes : bytes;
			records++;
		}
	}
	return records + (bytes + RECORD_BYTES - 1) / RECORD_BYTES;
}

/* Whether a server's first frame begins with these bytes: SETTINGS that is no answer. */
static __always_inline int begins_http2(struct head *head)
{
	return head->bytes[0] == 0 && head->bytes[3] == FRAME_SETTINGS && head->bytes[4] == 0 && head->bytes[5] == 0 &&
	       head->bytes[6] == 0 && head->bytes[7] == 0 && head->bytes[8] == 0;
}

/* Reads a write to a connection that speaks HTTP/2. */
static __always_inline void read_frames(struct http2 *http2, struct tls_key *key, __u64 buffer, __u32 bytes)
{
	struct http2_write write = { .key = *key, .buffer = buffer, .bytes = bytes };

	if (http2->is_idle) {
		http2->is_idle = 0;
		http2->generation++;
		http2->left_bytes = 0;
		http2->unsized = 0;
	}
	bpf_loop(FRAMES_MAX, read_frame, &write, 0);
	/* Too many frames, or memory that cannot be read: where the next one begins is not known. */
	if (write.at < bytes) {
		bpf_map_delete_elem(&http2_connections, key);
		return;
	}
	http2->written_bytes += bytes;
	http2->written_records += records_of(http2, bytes);
}
