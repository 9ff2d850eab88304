/* The entries and messages found in a buffer, before results are built from them. */
#ifndef PYLOGCTL_READING_H
#define PYLOGCTL_READING_H

#include "codec.h"

/* Where reading ends: at whichever limit is reached first. */
struct limits {
    size_t messages;
    size_t value_bytes; /* reached before an entry, except the first */
};

/* One buffer, and the messages found in it. */
struct reading {
    Py_buffer view;
    struct walk walk;
    enum crc_check check;
    struct entries entries;
    PyObject *unfolded; /* a tuple of payloads for each wrapper in `entries` */
    size_t message_count;
    size_t value_bytes; /* of the messages of whole entries */
    size_t cut_bytes;   /* of the messages of a last wrapper that the limit cuts */
};

static inline struct entry *entry_at(const struct reading *reading, size_t n) {
    return reading->entries.items + n;
}

/* Holds a buffer; -1 with an exception set. To be closed in any case. */
int reading_open(struct reading *reading, PyObject *buffer, enum crc_check check);
void reading_close(struct reading *reading);

/* Finds the messages up to a fault or a limit; -1 with an exception set.
 *
 * `open` is a Python function of codec and payload that returns the payloads in a wrapper, or None
 * if it cannot be read. */
int reading_run(struct reading *reading, PyObject *open, const struct limits *limits);

/* Checks that offsets fit 64 bits; -1 with an exception set. */
int check_offsets(const struct reading *reading, long long base_offset);

/* Returns the payload of an entry as a new `bytes`. */
PyObject *payload_object(const struct reading *reading, const struct entry *entry);

/* Returns the messages of the n-th wrapper, a borrowed tuple of `bytes`. */
PyObject *unfolded_at(const struct reading *reading, size_t n);

/* Lets other threads run while payloads are copied, unless some of them are objects. */
PyThreadState *unlock_for_copy(const struct reading *reading);

#endif
