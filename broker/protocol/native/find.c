/* Finding the next whole entry behind damage, in time linear in the bytes searched. */

#include <stdlib.h>

#include "codec.h"
#include "crc32.h"

/* Larger lengths are left out: every zero byte of text would be a candidate, and a smaller entry
 * follows soon. */
#define LENGTH_END (1u << 24)
#define MIN_ENTRY_BYTES (LENGTH_BYTES + MAGIC0_HEADER_BYTES)
/* Up to this size the CRC of a payload is computed by itself: that takes less time. */
#define DIRECT_MAX_BYTES 512
#define STEP_BYTES 64

/* The bytes searched, which continue in the file for `rest` bytes from their start, and the CRCs of
 * all bytes before each multiple of STEP_BYTES: of a payload of any size, the CRC is computed from
 * two of these, so that candidates inside each other do not add up their sizes. */
struct search {
    const uint8_t *data;
    size_t size;
    size_t rest;
    uint32_t *crcs;
    size_t crc_count; /* of those that are known */
};

enum verdict { NO_ENTRY, GOOD_ENTRY, NEEDS_MORE, NO_MEMORY };

/* Returns the CRC of all bytes before a position; `crcs` has room for it. */
static uint32_t crc_before(struct search *search, size_t position) {
    size_t step = position / STEP_BYTES;
    for (; search->crc_count <= step; search->crc_count++) {
        size_t n = search->crc_count;
        search->crcs[n] = n ? crc32_of(search->crcs[n - 1],
                                       search->data + (n - 1) * STEP_BYTES, STEP_BYTES)
                            : 0;
    }
    return crc32_of(search->crcs[step], search->data + step * STEP_BYTES, position % STEP_BYTES);
}

static enum verdict judge_crc(struct search *search, size_t start, size_t end, uint32_t stored) {
    size_t size = end - start;
    if (size > DIRECT_MAX_BYTES) {
        if (!search->crcs)
            search->crcs = malloc((search->size / STEP_BYTES + 1) * sizeof(uint32_t));
        if (!search->crcs)
            return NO_MEMORY;
        uint32_t moved = crc32_joined(crc_before(search, start), 0, size);
        return (moved ^ crc_before(search, end)) == stored ? GOOD_ENTRY : NO_ENTRY;
    }
    return crc32_of(0, search->data + start, size) == stored ? GOOD_ENTRY : NO_ENTRY;
}

/* Judges by the CRC, and by the header that follows; an entry without a payload is none, as no CRC
 * tells it from a few stray zero bytes. At least MAGIC0_HEADER_BYTES are there. */
static enum verdict judge(struct search *search, size_t position) {
    const uint8_t *start = search->data + position;
    uint32_t length = load_uint32(start);
    uint8_t magic = start[LENGTH_BYTES];
    size_t header_bytes = LENGTH_BYTES + MAGIC0_HEADER_BYTES + magic;
    size_t end = position + LENGTH_BYTES + length;
    if (end <= position + header_bytes || end > search->rest)
        return NO_ENTRY;
    bool has_following = search->rest - end >= MIN_ENTRY_BYTES;
    if (end + (has_following ? MIN_ENTRY_BYTES : 0) > search->size)
        return NEEDS_MORE;
    if (has_following) {
        const uint8_t *following = search->data + end;
        uint8_t following_magic = following[LENGTH_BYTES];
        if (following_magic > 1 ||
            (int32_t)load_uint32(following) < MAGIC0_HEADER_BYTES + following_magic)
            return NO_ENTRY;
    }
    return judge_crc(search, position + header_bytes, end, load_uint32(start + header_bytes - 4));
}

/* Returns the position behind the zero bytes that start at another one. */
static size_t behind_zeros(const uint8_t *data, size_t position, size_t size) {
    uint64_t words[8];
    for (; size - position >= sizeof words; position += sizeof words) {
        memcpy(words, data + position, sizeof words);
        if (words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7])
            break;
    }
    while (position < size && !data[position])
        position++;
    return position;
}

/* Returns the next position from which length and magic byte are possible, or `stop`; the buffer
 * has a length and a magic byte at all positions before `stop`. */
static size_t next_candidate(const uint8_t *data, size_t position, size_t stop, size_t size) {
    while (position < stop) {
        const uint8_t *zero = memchr(data + position, 0, stop - position);
        if (!zero)
            return stop;
        position = (size_t)(zero - data);
        uint32_t length = load_uint32(zero);
        if (!length)
            position = behind_zeros(data, position, size) - (LENGTH_BYTES - 1);
        else if (length >= MAGIC0_HEADER_BYTES && length < LENGTH_END && zero[LENGTH_BYTES] <= 1)
            return position;
        else
            position++;
    }
    return stop;
}

/* Searches the starts below `*position`; writes where it ended. */
static enum verdict find(struct search *search, size_t *position) {
    size_t size = search->size, stop = *position < size ? *position : size;
    size_t readable = size > LENGTH_BYTES ? size - LENGTH_BYTES : 0;
    size_t candidates_end = stop < readable ? stop : readable;
    for (size_t at = 0;; at++) {
        at = next_candidate(search->data, at, candidates_end, size);
        if (at >= candidates_end)
            break;
        enum verdict verdict = judge(search, at);
        if (verdict != NO_ENTRY) {
            *position = at;
            return verdict;
        }
    }
    *position = size < search->rest ? candidates_end : stop;
    return NO_ENTRY;
}

PyObject *codec_find_entry(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *buffer;
    Py_ssize_t stop, rest;
    if (!PyArg_ParseTuple(args, "Onn", &buffer, &stop, &rest))
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    if (stop < 0 || rest < view.len) {
        PyBuffer_Release(&view);
        PyErr_SetString(PyExc_ValueError, "a limit is out of range");
        return NULL;
    }
    struct search search = {.data = view.buf, .size = (size_t)view.len, .rest = (size_t)rest};
    size_t position = (size_t)stop;
    PyThreadState *unlocked = unlock_for(search.size);
    enum verdict verdict = find(&search, &position);
    free(search.crcs);
    lock_again(unlocked);
    PyBuffer_Release(&view);
    if (verdict == NO_MEMORY)
        return PyErr_NoMemory();
    PyObject *is_good = verdict == GOOD_ENTRY ? Py_True : Py_False;
    return Py_BuildValue("nO", (Py_ssize_t)position, is_good);
}
