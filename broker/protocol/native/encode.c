/* Message sets out of payloads, and out of delimited text. */

#include <stdlib.h>

#include "codec.h"
#include "crc32.h"

/* Writes one entry; returns its end. The CRC is that of the copy: the original may be changing. */
static uint8_t *put_entry(uint8_t *out, const uint8_t *payload, size_t size) {
    uint8_t *copy = out + ENTRY_OVERHEAD_BYTES;
    uint8_t *end = put_bytes(copy, payload, size);
    store_uint32(out, (uint32_t)size + MAGIC1_HEADER_BYTES);
    out[LENGTH_BYTES] = 1;     /* magic */
    out[LENGTH_BYTES + 1] = 0; /* attributes */
    store_uint32(out + LENGTH_BYTES + 2, crc32_of(0, copy, size));
    return end;
}

/* Payloads in memory that cannot move; buffers are held for all that are no `bytes`. */
struct payloads {
    struct payload {
        const uint8_t *data;
        size_t size;
    } *items;
    size_t count;
    size_t total_bytes;
    Py_buffer *buffers;
    size_t buffer_count;
};

static void payloads_release(struct payloads *payloads) {
    for (size_t n = 0; n < payloads->buffer_count; n++)
        PyBuffer_Release(&payloads->buffers[n]);
    PyMem_Free(payloads->buffers);
    PyMem_Free(payloads->items);
}

static int payloads_add(PyObject *module, struct payloads *payloads, PyObject *object) {
    struct payload *payload = &payloads->items[payloads->count];
    if (PyBytes_Check(object)) {
        payload->data = (const uint8_t *)PyBytes_AsString(object);
        payload->size = (size_t)PyBytes_Size(object);
    } else {
        Py_buffer *buffer = &payloads->buffers[payloads->buffer_count];
        if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) < 0)
            return -1;
        payloads->buffer_count++;
        payload->data = buffer->buf;
        payload->size = (size_t)buffer->len;
    }
    if (payload->size > MAX_PAYLOAD_BYTES) {
        PyErr_Format(type_of(module, MESSAGE_SIZE_ERROR),
                     "a message of %zu bytes is too large for the format; the limit is %d",
                     payload->size, (int)MAX_PAYLOAD_BYTES);
        return -1;
    }
    payloads->count++;
    payloads->total_bytes += payload->size + ENTRY_OVERHEAD_BYTES;
    if (payloads->total_bytes > PY_SSIZE_T_MAX) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static int payloads_hold(PyObject *module, struct payloads *payloads, PyObject *objects) {
    size_t count = (size_t)PyTuple_Size(objects), others = 0;
    for (size_t n = 0; n < count; n++)
        others += !PyBytes_Check(PyTuple_GetItem(objects, (Py_ssize_t)n));
    payloads->items = PyMem_Calloc(count, sizeof *payloads->items);
    payloads->buffers = PyMem_Calloc(others, sizeof *payloads->buffers);
    if (!payloads->items || !payloads->buffers) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t n = 0; n < count; n++)
        if (payloads_add(module, payloads, PyTuple_GetItem(objects, (Py_ssize_t)n)) < 0)
            return -1;
    return 0;
}

static PyObject *payloads_encode(const struct payloads *payloads) {
    PyObject *set = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)payloads->total_bytes);
    if (!set)
        return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AsString(set);
    PyThreadState *unlocked = unlock_for(payloads->total_bytes);
    for (size_t n = 0; n < payloads->count; n++)
        out = put_entry(out, payloads->items[n].data, payloads->items[n].size);
    lock_again(unlocked);
    return set;
}

PyObject *codec_encode(PyObject *module, PyObject *iterable) {
    PyObject *objects = PySequence_Tuple(iterable);
    if (!objects)
        return NULL;
    struct payloads payloads = {0};
    PyObject *set = NULL;
    if (payloads_hold(module, &payloads, objects) == 0)
        set = payloads_encode(&payloads);
    payloads_release(&payloads);
    Py_DECREF(objects);
    return set;
}

/* Delimited text and the limits on what becomes of it. */
struct text {
    Py_buffer data;
    Py_buffer delimiter;
    size_t max_payload_bytes;
    size_t batch_count;
    size_t batch_bytes;
    struct positions ends; /* of the lines, where their delimiters start */
    size_t oversize_start;
    bool is_oversize; /* the line after the last one in `ends` */
    size_t oversize_bytes;
};

static void text_release(struct text *text) {
    if (text->data.obj)
        PyBuffer_Release(&text->data);
    if (text->delimiter.obj)
        PyBuffer_Release(&text->delimiter);
    free(text->ends.items);
}

/* Returns where the next delimiter starts; NULL if none follows. */
static const uint8_t *find_delimiter(const uint8_t *from, size_t rest, const Py_buffer *delimiter) {
    const uint8_t *wanted = delimiter->buf;
    size_t size = (size_t)delimiter->len;
    if (size == 1)
        return memchr(from, *wanted, rest);
    while (rest >= size) {
        const uint8_t *found = memchr(from, *wanted, rest - size + 1);
        if (!found || memcmp(found, wanted, size) == 0)
            return found;
        rest -= (size_t)(found + 1 - from);
        from = found + 1;
    }
    return NULL;
}

/* Finds the lines, up to one that is too large; false if there is no memory. */
static bool text_split(struct text *text) {
    const uint8_t *data = text->data.buf;
    size_t size = (size_t)text->data.len, start = 0;
    while (start < size) {
        const uint8_t *found = find_delimiter(data + start, size - start, &text->delimiter);
        if (!found)
            break;
        size_t end = (size_t)(found - data);
        if (end - start > text->max_payload_bytes) {
            text->is_oversize = true;
            text->oversize_start = start;
            text->oversize_bytes = end - start;
            break;
        }
        if (!add_position(&text->ends, end))
            return false;
        start = end + (size_t)text->delimiter.len;
    }
    return true;
}

static size_t text_consumed(const struct text *text) {
    size_t count = text->ends.count;
    return count ? text->ends.items[count - 1] + (size_t)text->delimiter.len : 0;
}

static void text_write(const struct text *text, uint8_t *out) {
    const uint8_t *data = text->data.buf;
    size_t start = 0;
    for (size_t n = 0; n < text->ends.count; n++) {
        size_t end = text->ends.items[n];
        out = put_entry(out, data + start, end - start);
        start = end + (size_t)text->delimiter.len;
    }
}

/* Appends a batch to the lists of ends and counts. */
static int add_batch(PyObject *cuts, PyObject *counts, size_t end, size_t count) {
    PyObject *objects[2] = {PyLong_FromSize_t(end), PyLong_FromSize_t(count)};
    int failed = !objects[0] || !objects[1] || PyList_Append(cuts, objects[0]) < 0 ||
                 PyList_Append(counts, objects[1]) < 0;
    Py_XDECREF(objects[0]);
    Py_XDECREF(objects[1]);
    return failed ? -1 : 0;
}

/* Fills the lists of where batches end and of how many messages each has. */
static int text_cut(const struct text *text, PyObject *cuts, PyObject *counts) {
    size_t start = 0, batch_start = 0, end = 0, count = 0;
    for (size_t n = 0; n < text->ends.count; n++) {
        size_t entry_bytes = text->ends.items[n] - start + ENTRY_OVERHEAD_BYTES;
        bool is_full = count == text->batch_count ||
                       (count && end + entry_bytes - batch_start > text->batch_bytes);
        if (is_full) {
            if (add_batch(cuts, counts, end, count) < 0)
                return -1;
            batch_start = end;
            count = 0;
        }
        end += entry_bytes;
        count++;
        start = text->ends.items[n] + (size_t)text->delimiter.len;
    }
    return count ? add_batch(cuts, counts, end, count) : 0;
}

static PyObject *text_encode(PyObject *module, struct text *text) {
    size_t count = text->ends.count, consumed = text_consumed(text);
    size_t total = consumed - count * (size_t)text->delimiter.len;
    PyObject *cuts = PyList_New(0), *counts = PyList_New(0), *set = NULL;
    if (cuts && counts && count <= (PY_SSIZE_T_MAX - total) / ENTRY_OVERHEAD_BYTES)
        set = PyBytes_FromStringAndSize(
            NULL, (Py_ssize_t)(total + count * (size_t)ENTRY_OVERHEAD_BYTES));
    if (!set || text_cut(text, cuts, counts) < 0) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        Py_XDECREF(cuts);
        Py_XDECREF(counts);
        Py_XDECREF(set);
        return NULL;
    }
    uint8_t *out = (uint8_t *)PyBytes_AsString(set);
    PyThreadState *unlocked = unlock_for(total);
    text_write(text, out);
    lock_again(unlocked);
    return new_result(module, ENCODED_TEXT, "NnnNN", set, (Py_ssize_t)consumed,
                      (Py_ssize_t)count, cuts, counts);
}

static PyObject *text_raise_oversize(PyObject *module, const struct text *text) {
    PyObject *type = type_of(module, OVERSIZE_PIECE_ERROR);
    PyObject *error =
        PyObject_CallFunction(type, "nnnn", (Py_ssize_t)text->ends.count,
                              (Py_ssize_t)text->oversize_start, (Py_ssize_t)text->oversize_bytes,
                              (Py_ssize_t)text->max_payload_bytes);
    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    return NULL;
}

static int text_parse(struct text *text, PyObject *args) {
    Py_ssize_t max_payload_bytes, batch_count, batch_bytes;
    if (!PyArg_ParseTuple(args, "y*y*nnn", &text->data, &text->delimiter, &max_payload_bytes,
                          &batch_count, &batch_bytes))
        return -1;
    if (!text->delimiter.len || max_payload_bytes < 0 || batch_count < 1 || batch_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "a delimiter or a limit is out of range");
        return -1;
    }
    if (max_payload_bytes > MAX_PAYLOAD_BYTES)
        max_payload_bytes = MAX_PAYLOAD_BYTES;
    text->max_payload_bytes = (size_t)max_payload_bytes;
    text->batch_count = (size_t)batch_count;
    text->batch_bytes = (size_t)batch_bytes;
    return 0;
}

PyObject *codec_encode_delimited(PyObject *module, PyObject *args) {
    struct text text = {0};
    PyObject *result = NULL;
    if (text_parse(&text, args) == 0) {
        PyThreadState *unlocked = unlock_for((size_t)text.data.len);
        bool has_memory = text_split(&text);
        lock_again(unlocked);
        if (!has_memory)
            PyErr_NoMemory();
        else if (text.is_oversize)
            text_raise_oversize(module, &text);
        else
            result = text_encode(module, &text);
    }
    text_release(&text);
    return result;
}
