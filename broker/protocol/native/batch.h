/* Walks over Kafka's record batches, and messages of its formats 0 and 1, without Python: safe to
 * run without its lock. The layouts are in record_batch.py. Nothing beyond the buffer is read,
 * whatever is in it, and each size is read once, as in walk.h.
 */
#ifndef PYLOGCTL_BATCH_H
#define PYLOGCTL_BATCH_H

#include "walk.h"

enum {
    BATCH_MAGIC = 2,
    BATCH_HEADER_BYTES = 61,
    BATCH_FRONT_BYTES = 12, /* offset and size, which the size does not count */
    BATCH_EPOCH_AT = 12,
    BATCH_MAGIC_AT = 16,
    BATCH_LAST_DELTA_AT = 23,
    BATCH_MAX_HEADERS = 1 << 20, /* of its records */
    BATCH_HEADER_COST = 64,      /* bytes that each counts for in a limit of bytes */
};

/* One batch, or one outer message of formats 0 and 1; see RecordBatch in record_batch.py. */
struct batch {
    size_t position;
    size_t size;
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t producer_id;
    int32_t leader_epoch;
    uint32_t crc;
    int32_t last_offset_delta;
    int32_t base_sequence;
    int32_t record_count;
    int16_t attributes;
    int16_t producer_epoch;
    uint8_t magic;
};

struct batches {
    struct batch *items;
    size_t count;
    size_t room;
};

/* Bytes of a buffer; `data` is NULL for null. */
struct field {
    const uint8_t *data;
    size_t size;
};

struct header {
    struct field name;
    struct field content;
};

struct record {
    int64_t offset;
    int64_t timestamp;
    struct field key;
    struct field value;
    size_t first_header;
    size_t header_count;
};

/* Records with their headers; zeroed before the first use. */
struct records {
    struct record *items;
    size_t count;
    size_t room;
    struct header *headers;
    size_t header_count;
    size_t header_room;
    size_t header_limit; /* the most that there may be behind this batch */
    bool only_counts;    /* none is kept */
    int64_t max_timestamp; /* since it was set */
};

static inline uint64_t load_uint64(const uint8_t *data) {
    return (uint64_t)load_uint32(data) << 32 | load_uint32(data + 4);
}

static inline void store_uint64(uint8_t *data, uint64_t value) {
    store_uint32(data, (uint32_t)(value >> 32));
    store_uint32(data + 4, (uint32_t)value);
}

static inline bool is_compressed(const struct batch *batch) {
    return batch->attributes & 7;
}

static inline bool is_control(const struct batch *batch) {
    return batch->magic == BATCH_MAGIC && batch->attributes & 1 << 5;
}

/* Whether the records of a batch need not have its max timestamp: there is append time, or compaction
 * has taken some. */
static inline bool has_other_timestamps(const struct batch *batch) {
    return (batch->magic && batch->attributes & 1 << 3) ||
           (batch->magic == BATCH_MAGIC && batch->attributes & 1 << 6);
}

/* Reads and validates the batch at a position; returns its fault. */
enum fault read_batch(const uint8_t *data, size_t size, size_t position, struct batch *batch);

/* Returns key and value of a message of formats 0 and 1; false if they do not fill it exactly. */
bool key_and_value(const uint8_t *data, const struct batch *batch, struct field *key,
                   struct field *value);

/* Appends the records of a batch, or message, whose decompressed records or set are `content`; for
 * a message that is not compressed that is the buffer it is in. False if there is no memory. With a
 * fault nothing is appended. */
bool parse_batch(const struct batch *batch, struct field content, struct records *records,
                 enum fault *fault);

bool add_batch(struct batches *batches, const struct batch *batch);

#endif
