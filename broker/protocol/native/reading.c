#include "reading.h"

#include <stdlib.h>

int reading_open(struct reading *reading, PyObject *buffer, enum crc_check check) {
    if (PyObject_GetBuffer(buffer, &reading->view, PyBUF_SIMPLE) < 0)
        return -1;
    reading->check = check;
    reading->walk.data = reading->view.buf;
    reading->walk.size = (size_t)reading->view.len;
    reading->unfolded = PyList_New(0);
    return reading->unfolded ? 0 : -1;
}

void reading_close(struct reading *reading) {
    if (reading->view.obj)
        PyBuffer_Release(&reading->view);
    Py_XDECREF(reading->unfolded);
    free(reading->entries.items);
}

PyObject *payload_object(const struct reading *reading, const struct entry *entry) {
    return PyBytes_FromStringAndSize((const char *)payload_of(reading->walk.data, entry),
                                     (Py_ssize_t)payload_bytes(entry));
}

PyObject *unfolded_at(const struct reading *reading, size_t n) {
    return PyList_GetItem(reading->unfolded, (Py_ssize_t)n);
}

PyThreadState *unlock_for_copy(const struct reading *reading) {
    return PyList_Size(reading->unfolded) ? NULL : unlock_for(reading->value_bytes);
}

int check_offsets(const struct reading *reading, long long base_offset) {
    if (base_offset <= INT64_MAX - (int64_t)reading->walk.size)
        return 0;
    PyErr_SetString(PyExc_OverflowError, "the offset after the last message exceeds 64 bits");
    return -1;
}

/* Has the reading end before entry `n`, or behind it. */
static void reading_end_before(struct reading *reading, size_t n, enum fault fault) {
    reading->walk.position = entry_at(reading, n)->start;
    reading->walk.fault = fault;
    reading->entries.count = n;
}

static void reading_end_behind(struct reading *reading, size_t n) {
    reading->walk.position = entry_at(reading, n)->end;
    reading->walk.fault = FAULT_NONE;
    reading->entries.count = n + 1;
}

/* Has Python unfold a wrapper; returns a new tuple of payloads, None if it cannot be read. */
static PyObject *open_wrapper(struct reading *reading, const struct entry *entry, PyObject *open) {
    PyObject *payload = payload_object(reading, entry);
    PyObject *found = NULL, *tuple = NULL;
    if (payload)
        found = PyObject_CallFunction(open, "iO", (int)entry->codec, payload);
    if (found)
        tuple = found == Py_None ? Py_NewRef(found) : PySequence_Tuple(found);
    Py_XDECREF(found);
    Py_XDECREF(payload);
    return tuple;
}

/* Returns the bytes of the first `count` payloads of a tuple, -1 if they are no `bytes`. */
static Py_ssize_t tuple_bytes(PyObject *tuple, Py_ssize_t count) {
    Py_ssize_t total = 0;
    for (Py_ssize_t n = 0; n < count; n++) {
        Py_ssize_t size = PyBytes_Size(PyTuple_GetItem(tuple, n));
        if (size < 0)
            return -1;
        if (size > PY_SSIZE_T_MAX - total) {
            PyErr_NoMemory();
            return -1;
        }
        total += size;
    }
    return total;
}

/* Whether reading continues after an entry; FAILED with an exception set. */
enum progress { GOES_ON, IS_DONE, FAILED };

/* Takes entry `n` with these messages, unless that exceeds a limit. */
static enum progress take(struct reading *reading, size_t n, size_t message_count,
                          size_t value_bytes, const struct limits *limits) {
    size_t messages_left = limits->messages - reading->message_count;
    if (n && value_bytes > limits->value_bytes - reading->value_bytes) {
        reading_end_before(reading, n, FAULT_NONE);
        return IS_DONE;
    }
    reading->message_count += message_count;
    reading->value_bytes += value_bytes;
    if (message_count < messages_left && reading->value_bytes <= limits->value_bytes)
        return GOES_ON;
    reading_end_behind(reading, n);
    return IS_DONE;
}

/* Takes the first of a wrapper's messages; a reader can only resume at its start. */
static enum progress take_some(struct reading *reading, size_t n, PyObject *payloads,
                               const struct limits *limits) {
    Py_ssize_t count = (Py_ssize_t)(limits->messages - reading->message_count);
    Py_ssize_t bytes = tuple_bytes(payloads, count);
    if (bytes < 0)
        return FAILED;
    reading_end_behind(reading, n);
    reading->walk.position = entry_at(reading, n)->start;
    reading->message_count = limits->messages;
    reading->cut_bytes = (size_t)bytes;
    return IS_DONE;
}

static enum progress unfold(struct reading *reading, size_t n, PyObject *open,
                            const struct limits *limits) {
    struct entry *entry = entry_at(reading, n);
    PyObject *payloads = open_wrapper(reading, entry, open);
    if (!payloads)
        return FAILED;
    enum progress progress = FAILED;
    if (payloads == Py_None && reading->check == CRC_MARK) {
        entry->codec = 0;
        entry->is_good = false;
        progress = take(reading, n, 1, payload_bytes(entry), limits);
    } else if (payloads == Py_None) {
        reading_end_before(reading, n, FAULT_COMPRESSED);
        progress = IS_DONE;
    } else if (PyList_Append(reading->unfolded, payloads) == 0) {
        size_t count = (size_t)PyTuple_Size(payloads);
        if (count > limits->messages - reading->message_count) {
            progress = take_some(reading, n, payloads, limits);
        } else {
            Py_ssize_t bytes = tuple_bytes(payloads, (Py_ssize_t)count);
            if (bytes >= 0)
                progress = take(reading, n, count, (size_t)bytes, limits);
        }
    }
    Py_DECREF(payloads);
    return progress;
}

static enum progress walk_on(struct reading *reading, const struct limits *limits) {
    struct walk *walk = &reading->walk;
    size_t most = limits->messages - reading->message_count;
    size_t most_bytes = limits->value_bytes - reading->value_bytes;
    if (!most)
        return IS_DONE;
    size_t rest = walk->size - walk->position;
    /* No entry takes less than its payload: what lies further on would be checked in vain. */
    size_t stop = most_bytes < rest ? walk->position + most_bytes + 1 : walk->size;
    PyThreadState *unlocked = unlock_for(stop - walk->position);
    bool has_memory = walk_entries(walk, stop, most, reading->check, &reading->entries);
    lock_again(unlocked);
    if (has_memory)
        return GOES_ON;
    PyErr_NoMemory();
    return FAILED;
}

int reading_run(struct reading *reading, PyObject *open, const struct limits *limits) {
    size_t taken = 0;
    enum progress progress;
    while ((progress = walk_on(reading, limits)) == GOES_ON) {
        size_t found = reading->entries.count;
        for (; progress == GOES_ON && taken < found; taken++) {
            struct entry *entry = entry_at(reading, taken);
            progress = entry->codec ? unfold(reading, taken, open, limits)
                                    : take(reading, taken, 1, payload_bytes(entry), limits);
        }
        if (progress != GOES_ON || reading->walk.fault ||
            reading->walk.position == reading->walk.size)
            break;
    }
    return progress == FAILED ? -1 : 0;
}
