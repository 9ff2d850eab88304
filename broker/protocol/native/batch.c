#include "batch.h"

#include "crc32.h"

enum {
    LEAST_OLD_SIZE = 14, /* of format 0, without offset and size */
    OLD_CHECKED_FROM = 16,
    OLD_KEY_AT = 18, /* in format 0 */
    OLD_TIMESTAMP_BYTES = 8,
    CHECKED_FROM = 21,
    LAST_CODEC = 4,
    LAST_OLD_CODEC = 3,
    APPEND_TIME = 1 << 3,
    LEAST_RECORD_BYTES = 7,
    LEAST_HEADER_BYTES = 2,
};

static enum fault read_old(const uint8_t *data, struct batch *batch) {
    const uint8_t *start = data + batch->position;
    batch->crc = load_uint32(start + BATCH_FRONT_BYTES);
    batch->attributes = (int8_t)start[OLD_CHECKED_FROM + 1];
    if (crc32_of(0, start + OLD_CHECKED_FROM, batch->size - OLD_CHECKED_FROM) != batch->crc)
        return FAULT_CRC;
    if ((batch->attributes & 7) > LAST_OLD_CODEC)
        return FAULT_CODEC;
    if (batch->base_offset < 0 || batch->base_offset == INT64_MAX)
        return FAULT_OFFSETS;
    batch->leader_epoch = -1;
    batch->last_offset_delta = 0;
    batch->base_timestamp = batch->magic ? (int64_t)load_uint64(start + OLD_KEY_AT) : -1;
    batch->max_timestamp = batch->base_timestamp;
    batch->producer_id = -1;
    batch->producer_epoch = -1;
    batch->base_sequence = -1;
    batch->record_count = is_compressed(batch) ? -1 : 1;
    struct field key, value;
    return key_and_value(data, batch, &key, &value) ? FAULT_NONE : FAULT_RECORDS;
}

static enum fault read_new(const uint8_t *data, struct batch *batch) {
    const uint8_t *start = data + batch->position;
    batch->leader_epoch = (int32_t)load_uint32(start + BATCH_EPOCH_AT);
    batch->crc = load_uint32(start + 17);
    batch->attributes = (int16_t)(load_uint32(start + 21) >> 16);
    batch->last_offset_delta = (int32_t)load_uint32(start + BATCH_LAST_DELTA_AT);
    batch->base_timestamp = (int64_t)load_uint64(start + 27);
    batch->max_timestamp = (int64_t)load_uint64(start + 35);
    batch->producer_id = (int64_t)load_uint64(start + 43);
    batch->producer_epoch = (int16_t)(load_uint32(start + 51) >> 16);
    batch->base_sequence = (int32_t)load_uint32(start + 53);
    batch->record_count = (int32_t)load_uint32(start + 57);
    if (crc32c_of(0, start + CHECKED_FROM, batch->size - CHECKED_FROM) != batch->crc)
        return FAULT_CRC;
    if ((batch->attributes & 7) > LAST_CODEC)
        return FAULT_CODEC;
    int64_t delta = batch->last_offset_delta, count = batch->record_count;
    bool is_good = batch->base_offset >= 0 && delta >= 0 && count >= 0 && count <= delta + 1;
    return is_good && batch->base_offset < INT64_MAX - delta ? FAULT_NONE : FAULT_OFFSETS;
}

enum fault read_batch(const uint8_t *data, size_t size, size_t position, struct batch *batch) {
    static const int32_t least_sizes[] = {LEAST_OLD_SIZE, LEAST_OLD_SIZE + OLD_TIMESTAMP_BYTES,
                                          BATCH_HEADER_BYTES - BATCH_FRONT_BYTES};
    size_t rest = size - position;
    if (rest < BATCH_FRONT_BYTES)
        return FAULT_PARTIAL;
    const uint8_t *start = data + position;
    int32_t length = (int32_t)load_uint32(start + 8);
    if (length < LEAST_OLD_SIZE)
        return FAULT_SIZE;
    if (rest <= BATCH_MAGIC_AT)
        return FAULT_PARTIAL;
    batch->magic = start[BATCH_MAGIC_AT];
    if (batch->magic > BATCH_MAGIC)
        return FAULT_MAGIC;
    if (length < least_sizes[batch->magic])
        return FAULT_SIZE;
    if ((size_t)length > rest - BATCH_FRONT_BYTES)
        return FAULT_PARTIAL;
    batch->position = position;
    batch->size = BATCH_FRONT_BYTES + (size_t)length;
    batch->base_offset = (int64_t)load_uint64(start);
    return batch->magic == BATCH_MAGIC ? read_new(data, batch) : read_old(data, batch);
}

bool key_and_value(const uint8_t *data, const struct batch *batch, struct field *key,
                   struct field *value) {
    size_t end = batch->position + batch->size;
    size_t position = batch->position + OLD_KEY_AT + (batch->magic ? OLD_TIMESTAMP_BYTES : 0);
    struct field *fields[] = {key, value};
    for (int n = 0; n < 2; n++) {
        if (end - position < 4)
            return false;
        int32_t size = (int32_t)load_uint32(data + position);
        position += 4;
        if (size < -1 || (size > 0 && (size_t)size > end - position))
            return false;
        fields[n]->data = size < 0 ? NULL : data + position;
        fields[n]->size = size < 0 ? 0 : (size_t)size;
        position += fields[n]->size;
    }
    return position == end;
}

static bool add_record(struct records *records, const struct record *record) {
    if (record->timestamp > records->max_timestamp)
        records->max_timestamp = record->timestamp;
    if (records->only_counts) {
        records->count++;
        return true;
    }
    void *items = grown(records->items, sizeof *record, records->count, &records->room);
    if (!items)
        return false;
    records->items = items;
    records->items[records->count++] = *record;
    return true;
}

static bool add_header(struct records *records, const struct header *header) {
    if (records->only_counts) {
        records->header_count++;
        return true;
    }
    void *items =
        grown(records->headers, sizeof *header, records->header_count, &records->header_room);
    if (!items)
        return false;
    records->headers = items;
    records->headers[records->header_count++] = *header;
    return true;
}

static bool add_old(const uint8_t *data, const struct batch *batch, struct records *records) {
    struct record record = {.offset = batch->base_offset, .timestamp = batch->max_timestamp};
    record.first_header = records->header_count;
    /* which another thread may have made impossible meanwhile */
    if (!key_and_value(data, batch, &record.key, &record.value))
        record.key = record.value = (struct field){NULL, 0};
    return add_record(records, &record);
}

/* Appends the messages of a wrapper. */
static bool parse_wrapper(const struct batch *batch, struct field set, struct records *records,
                          enum fault *fault) {
    size_t first = records->count;
    int64_t last = -1;
    *fault = set.size ? FAULT_NONE : FAULT_COMPRESSED;
    for (size_t position = 0; position < set.size;) {
        struct batch inner;
        bool is_good = !read_batch(set.data, set.size, position, &inner) &&
                       inner.magic == batch->magic && !is_compressed(&inner) &&
                       inner.base_offset > last;
        if (!is_good) {
            *fault = FAULT_COMPRESSED;
            return true;
        }
        if (!add_old(set.data, &inner, records))
            return false;
        last = inner.base_offset;
        position += inner.size;
    }
    int64_t base = batch->magic ? batch->base_offset - last : 0; /* relative in format 1 */
    if (base < 0)
        *fault = FAULT_COMPRESSED;
    for (size_t n = first; !*fault && !records->only_counts && n < records->count; n++) {
        records->items[n].offset += base;
        if (batch->magic && batch->attributes & APPEND_TIME)
            records->items[n].timestamp = batch->max_timestamp;
    }
    return true;
}

/* What is left of a batch's records. */
struct cursor {
    const uint8_t *at;
    const uint8_t *end;
};

/* Reads a number of up to so many bits. */
static inline bool read_varint(struct cursor *cursor, unsigned bits, int64_t *number) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits && cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = (int64_t)(value >> 1 ^ (0 - (value & 1)));
            return bits == 64 ? shift < 63 || byte < 2 : !(value >> bits);
        }
    }
    return false;
}

static inline bool read_field(struct cursor *cursor, struct field *field) {
    int64_t size;
    if (!read_varint(cursor, 32, &size) || size < -1 || size > cursor->end - cursor->at)
        return false;
    field->data = size < 0 ? NULL : cursor->at;
    field->size = size < 0 ? 0 : (size_t)size;
    cursor->at += field->size;
    return true;
}

/* What reading a record has led to. */
enum outcome { TAKEN, BROKEN, NO_MEMORY };

static enum outcome read_headers(struct cursor *cursor, struct record *record,
                                 struct records *records) {
    int64_t count;
    if (!read_varint(cursor, 32, &count) || count < 0 ||
        count > (cursor->end - cursor->at) / LEAST_HEADER_BYTES ||
        (size_t)count > records->header_limit - records->header_count)
        return BROKEN;
    record->first_header = records->header_count;
    record->header_count = (size_t)count;
    while (count--) {
        struct header header;
        if (!read_field(cursor, &header.name) || !read_field(cursor, &header.content) ||
            !header.name.data)
            return BROKEN;
        if (!add_header(records, &header))
            return NO_MEMORY;
    }
    return TAKEN;
}

static bool add_overflows(int64_t one, int64_t other) {
    return other > 0 ? one > INT64_MAX - other : one < INT64_MIN - other;
}

/* Appends a record whose offset delta is larger than `last`, which becomes that. */
static enum outcome read_record(struct cursor *cursor, const struct batch *batch, int64_t *last,
                                struct records *records) {
    struct record record;
    int64_t size, time, delta;
    if (!read_varint(cursor, 32, &size) || size <= 0 || size > cursor->end - cursor->at)
        return BROKEN;
    const uint8_t *end = cursor->at + size;
    cursor->at++; /* the attributes have no use */
    if (!read_varint(cursor, 64, &time) || !read_varint(cursor, 32, &delta) ||
        !read_field(cursor, &record.key) || !read_field(cursor, &record.value))
        return BROKEN;
    enum outcome outcome = read_headers(cursor, &record, records);
    if (outcome != TAKEN)
        return outcome;
    if (cursor->at != end || delta <= *last || delta > batch->last_offset_delta ||
        add_overflows(batch->base_timestamp, time))
        return BROKEN;
    *last = delta;
    record.offset = batch->base_offset + delta;
    record.timestamp = batch->attributes & APPEND_TIME ? batch->max_timestamp
                                                       : batch->base_timestamp + time;
    return add_record(records, &record) ? TAKEN : NO_MEMORY;
}

static bool parse_new(const struct batch *batch, struct field content, struct records *records,
                      enum fault *fault) {
    struct cursor cursor = {content.data, content.data + content.size};
    int64_t last = -1;
    bool fits = (size_t)batch->record_count <= content.size / LEAST_RECORD_BYTES;
    enum outcome outcome = fits ? TAKEN : BROKEN;
    for (int32_t n = 0; outcome == TAKEN && n < batch->record_count; n++)
        outcome = read_record(&cursor, batch, &last, records);
    *fault = outcome == BROKEN || cursor.at != cursor.end ? FAULT_RECORDS : FAULT_NONE;
    return outcome != NO_MEMORY;
}

bool parse_batch(const struct batch *batch, struct field content, struct records *records,
                 enum fault *fault) {
    size_t count = records->count, header_count = records->header_count;
    bool has_memory;
    records->header_limit = header_count + BATCH_MAX_HEADERS;
    *fault = FAULT_NONE;
    if (batch->magic == BATCH_MAGIC)
        has_memory = parse_new(batch, content, records, fault);
    else if (is_compressed(batch))
        has_memory = parse_wrapper(batch, content, records, fault);
    else
        has_memory = add_old(content.data, batch, records);
    if (*fault) {
        records->count = count;
        records->header_count = header_count;
    }
    return has_memory;
}

bool add_batch(struct batches *batches, const struct batch *batch) {
    void *items = grown(batches->items, sizeof *batch, batches->count, &batches->room);
    if (!items)
        return false;
    batches->items = items;
    batches->items[batches->count++] = *batch;
    return true;
}
