/* Walks over the entries of a message set, without Python: safe to run without its lock.
 *
 *     | length int32 | magic int8 | attributes int8 (magic 1 only) | crc uint32 | payload |
 *
 * `length` counts what follows it; the CRC covers the payload alone. Nothing beyond the buffer is
 * read, whatever is in it. Each length is read once, so that a buffer that another thread writes
 * into gives wrong messages at worst.
 */
#ifndef PYLOGCTL_WALK_H
#define PYLOGCTL_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LENGTH_BYTES = 4,
    MAGIC0_HEADER_BYTES = 5, /* without the length */
    MAGIC1_HEADER_BYTES = 6,
    ENTRY_OVERHEAD_BYTES = LENGTH_BYTES + MAGIC1_HEADER_BYTES,
    MAX_PAYLOAD_BYTES = INT32_MAX - MAGIC1_HEADER_BYTES,
};

/* The values of `Fault` in message.py. */
enum fault {
    FAULT_NONE,
    FAULT_PARTIAL,
    FAULT_SIZE,
    FAULT_MAGIC,
    FAULT_CODEC,
    FAULT_CRC,
    FAULT_COMPRESSED,
    FAULT_OFFSETS,
    FAULT_RECORDS,
    FAULT_TIMESTAMPS,
};

/* The values of `CrcCheck` in message.py. */
enum crc_check { CRC_STOP, CRC_MARK, CRC_OFF };

/* One outer entry. */
struct entry {
    size_t start;
    size_t end;
    uint8_t header_bytes; /* from `start` to the payload */
    uint8_t attributes;   /* 0 for magic 0, which has none */
    uint8_t codec;        /* of a wrapper that can be opened; 0 for all else */
    bool is_good;         /* false for one that CRC_MARK let pass */
};

/* Arrays that grow; zeroed before the first use, freed by `free(items)`. */
struct entries {
    struct entry *items;
    size_t count;
    size_t room;
};

struct positions {
    size_t *items;
    size_t count;
    size_t room;
};

/* A walk over entries, which can be resumed until there is a fault. */
struct walk {
    const uint8_t *data;
    size_t size;
    size_t position; /* behind the last entry that was taken */
    size_t count;    /* of those entries */
    size_t largest;  /* of their payloads */
    enum fault fault;
};

static inline const uint8_t *payload_of(const uint8_t *data, const struct entry *entry) {
    return data + entry->start + entry->header_bytes;
}

static inline size_t payload_bytes(const struct entry *entry) {
    return entry->end - entry->start - entry->header_bytes;
}

static inline uint32_t load_uint32(const uint8_t *data) {
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static inline void store_uint32(uint8_t *data, uint32_t value) {
    data[0] = (uint8_t)(value >> 24);
    data[1] = (uint8_t)(value >> 16);
    data[2] = (uint8_t)(value >> 8);
    data[3] = (uint8_t)value;
}

/* Walks to a fault or the end and records where wrappers start; false if there is no memory. */
bool walk_wrappers(struct walk *walk, struct positions *wrappers);

/* Walks to a fault, the position `stop`, or over `most` further entries, and records every entry;
 * treats CRCs as in `check`. False if there is no memory. */
bool walk_entries(struct walk *walk, size_t stop, size_t most, enum crc_check check,
                  struct entries *entries);

/* What ends a walk by the lengths alone. */
struct bounds {
    int32_t least_bytes; /* that a length may be, at least 0 */
    int32_t most_bytes;
    size_t most_count;
};

/* Records the start of every whole entry, and the end of the last, by the lengths alone. */
bool walk_boundaries(const uint8_t *data, size_t size, const struct bounds *bounds,
                     struct positions *boundaries);

/* Returns whether the entries end where the data does, by the lengths alone. */
bool are_whole(const uint8_t *data, size_t size);

/* Makes room for one more item; returns the array, NULL if there is no memory. */
void *grown(void *items, size_t item_bytes, size_t count, size_t *room);

/* Appends to an array; false if there is no memory. */
bool add_position(struct positions *positions, size_t position);

#endif
