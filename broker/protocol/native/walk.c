#include "walk.h"

#include <stdlib.h>

#include "crc32.h"

#define NO_CODEC 0xFF

/* Returns the codec that attributes name: the low two bits, or four of them for our extensions. */
static uint8_t codec_of(uint8_t attributes) {
    uint8_t low = attributes & 3, extension = attributes & 15;
    if (low < 3)
        return low;
    return extension == 7 || extension == 11 ? extension : NO_CODEC; /* lz4, zstd */
}

/* Reads the header of a whole entry; returns the fault if there is none. */
static enum fault read_entry(const struct walk *walk, size_t position, struct entry *entry) {
    size_t rest = walk->size - position;
    if (rest < LENGTH_BYTES)
        return FAULT_PARTIAL;
    const uint8_t *start = walk->data + position;
    int32_t length = (int32_t)load_uint32(start);
    if (length < MAGIC0_HEADER_BYTES)
        return FAULT_SIZE;
    if (rest == LENGTH_BYTES)
        return FAULT_PARTIAL;
    uint8_t magic = start[LENGTH_BYTES];
    if (magic > 1)
        return FAULT_MAGIC;
    if (length < MAGIC0_HEADER_BYTES + magic)
        return FAULT_SIZE;
    if ((size_t)length > rest - LENGTH_BYTES)
        return FAULT_PARTIAL;
    entry->start = position;
    entry->end = position + LENGTH_BYTES + (size_t)length;
    entry->header_bytes = LENGTH_BYTES + MAGIC0_HEADER_BYTES + magic;
    entry->attributes = magic ? start[LENGTH_BYTES + 1] : 0;
    entry->codec = codec_of(entry->attributes);
    return FAULT_NONE;
}

/* Validates codec and CRC of a whole entry. */
static enum fault check_content(const struct walk *walk, const struct entry *entry, bool with_crc) {
    if (entry->codec == NO_CODEC)
        return FAULT_CODEC;
    if (!with_crc)
        return FAULT_NONE;
    const uint8_t *payload = payload_of(walk->data, entry);
    uint32_t stored = load_uint32(payload - sizeof stored);
    return crc32_of(0, payload, payload_bytes(entry)) == stored ? FAULT_NONE : FAULT_CRC;
}

static inline void take(struct walk *walk, const struct entry *entry) {
    size_t size = payload_bytes(entry);
    if (size > walk->largest)
        walk->largest = size;
    walk->position = entry->end;
    walk->count++;
}

bool walk_wrappers(struct walk *walk, struct positions *wrappers) {
    while (walk->position < walk->size) {
        struct entry entry;
        walk->fault = read_entry(walk, walk->position, &entry);
        if (!walk->fault)
            walk->fault = check_content(walk, &entry, true);
        if (walk->fault)
            break;
        if (entry.codec && !add_position(wrappers, entry.start))
            return false;
        take(walk, &entry);
    }
    return true;
}

void *grown(void *items, size_t item_bytes, size_t count, size_t *room) {
    if (count < *room)
        return items;
    size_t more = *room ? *room * 2 : 64;
    if (more > SIZE_MAX / item_bytes)
        return NULL;
    void *moved = realloc(items, more * item_bytes);
    if (moved)
        *room = more;
    return moved;
}

bool walk_entries(struct walk *walk, size_t stop, size_t most, enum crc_check check,
                  struct entries *entries) {
    for (; most && walk->position < stop; most--) {
        void *items = grown(entries->items, sizeof(struct entry), entries->count, &entries->room);
        if (!items)
            return false;
        entries->items = items;
        struct entry *entry = entries->items + entries->count;
        walk->fault = read_entry(walk, walk->position, entry);
        if (walk->fault)
            break;
        enum fault fault = check_content(walk, entry, check != CRC_OFF);
        entry->is_good = !fault;
        if (fault && check != CRC_MARK) {
            walk->fault = fault;
            break;
        }
        if (fault)
            entry->codec = 0;
        take(walk, entry);
        entries->count++;
    }
    return true;
}

/* Returns the end of the entry at `position`, by its length alone; 0 if it is not whole. */
static size_t entry_end(const uint8_t *data, size_t size, size_t position, int32_t least_bytes,
                        int32_t most_bytes) {
    size_t rest = size - position;
    if (rest < LENGTH_BYTES)
        return 0;
    int32_t length = (int32_t)load_uint32(data + position);
    if (length < least_bytes || length > most_bytes || (size_t)length > rest - LENGTH_BYTES)
        return 0;
    return position + LENGTH_BYTES + (size_t)length;
}

bool walk_boundaries(const uint8_t *data, size_t size, const struct bounds *bounds,
                     struct positions *boundaries) {
    size_t position = 0, left = bounds->most_count;
    if (!add_position(boundaries, 0))
        return false;
    while (left-- && (position = entry_end(data, size, position, bounds->least_bytes,
                                           bounds->most_bytes)))
        if (!add_position(boundaries, position))
            return false;
    return true;
}

bool are_whole(const uint8_t *data, size_t size) {
    size_t position = 0;
    while (position < size &&
           (position = entry_end(data, size, position, MAGIC0_HEADER_BYTES, INT32_MAX)))
        ;
    return position == size;
}

bool add_position(struct positions *positions, size_t position) {
    void *items = grown(positions->items, sizeof(size_t), positions->count, &positions->room);
    if (!items)
        return false;
    positions->items = items;
    positions->items[positions->count++] = position;
    return true;
}
