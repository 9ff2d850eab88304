/* Messages out of message sets, as objects and as delimited text.
 *
 * First the entries are found and checked, without the interpreter's lock where that pays; then
 * wrappers are unfolded by a Python function; then the result is made, its size being known.
 */

#include "message.h"
#include "reading.h"

static const struct limits UNLIMITED = {SIZE_MAX, SIZE_MAX};

/* How messages are made: as `Message` of an origin, or as (offset, next offset, payload). */
struct maker {
    PyObject *type; /* NULL for tuples */
    struct origin origin;
};

/* Puts a message into the list; consumes the payload. */
static int put_message(PyObject *list, size_t n, const struct maker *maker, PyObject *offset,
                       PyObject *next, PyObject *payload, Py_ssize_t inner) {
    PyObject *message = NULL;
    if (payload && maker->type)
        message = message_made(maker->type, &maker->origin, offset, next, payload, inner);
    else if (payload && (message = PyTuple_New(3))) {
        PyTuple_SetItem(message, 0, Py_NewRef(offset));
        PyTuple_SetItem(message, 1, Py_NewRef(next));
        PyTuple_SetItem(message, 2, Py_NewRef(payload));
    }
    Py_XDECREF(payload);
    return message ? PyList_SetItem(list, (Py_ssize_t)n, message) : -1;
}

/* Puts a wrapper's messages: all but the last resume at its start. */
static int put_unfolded(PyObject *list, size_t n, const struct maker *maker, PyObject *offset,
                        PyObject *next, PyObject *payloads) {
    Py_ssize_t count = PyTuple_Size(payloads);
    for (Py_ssize_t inner = 0; inner < count; inner++) {
        PyObject *payload = Py_NewRef(PyTuple_GetItem(payloads, inner));
        PyObject *resume = inner == count - 1 ? next : offset;
        if (put_message(list, n + (size_t)inner, maker, offset, resume, payload, inner) < 0)
            return -1;
    }
    return 0;
}

/* Puts the messages of one entry, unfolded ones if it is a wrapper; returns how many, or -1. */
static Py_ssize_t put_entry(PyObject *list, size_t n, const struct maker *maker, PyObject *offset,
                            PyObject *next, const struct reading *reading,
                            const struct entry *entry, PyObject *unfolded) {
    if (unfolded)
        return put_unfolded(list, n, maker, offset, next, unfolded) < 0 ? -1
                                                                        : PyTuple_Size(unfolded);
    PyObject *payload = payload_object(reading, entry);
    return put_message(list, n, maker, offset, next, payload, 0) < 0 ? -1 : 1;
}

static int put_entries(const struct reading *reading, PyObject *list, const struct maker *maker,
                       int64_t base_offset) {
    size_t place = 0, wrapper = 0;
    PyObject *offset = PyLong_FromLongLong(base_offset);
    for (size_t n = 0; offset && n < reading->entries.count; n++) {
        const struct entry *entry = entry_at(reading, n);
        PyObject *unfolded = entry->codec ? unfolded_at(reading, wrapper++) : NULL;
        PyObject *next = PyLong_FromLongLong(base_offset + (int64_t)entry->end);
        Py_ssize_t count = -1;
        if (next)
            count = put_entry(list, place, maker, offset, next, reading, entry, unfolded);
        Py_DECREF(offset);
        offset = next;
        if (count < 0)
            Py_CLEAR(offset);
        place += (size_t)count;
    }
    if (!offset)
        return -1;
    Py_DECREF(offset);
    return 0;
}

static PyObject *decoded(PyObject *module, PyObject *buffer, long long base_offset, PyObject *open,
                         const struct maker *maker) {
    PyObject *list = NULL, *result = NULL;
    struct reading reading = {0};
    if (reading_open(&reading, buffer, CRC_STOP) == 0 &&
        check_offsets(&reading, base_offset) == 0 && reading_run(&reading, open, &UNLIMITED) == 0)
        list = PyList_New((Py_ssize_t)reading.message_count);
    if (list && put_entries(&reading, list, maker, base_offset) == 0)
        result = new_result(module, DECODED, "OnO", list,
                            (Py_ssize_t)reading.walk.position,
                            fault_object(module, reading.walk.fault));
    Py_XDECREF(list);
    reading_close(&reading);
    return result;
}

PyObject *codec_decode(PyObject *module, PyObject *args) {
    PyObject *buffer, *open;
    long long base_offset;
    if (!PyArg_ParseTuple(args, "OLO", &buffer, &base_offset, &open))
        return NULL;
    struct maker maker = {0};
    return decoded(module, buffer, base_offset, open, &maker);
}

PyObject *codec_decode_messages(PyObject *module, PyObject *args) {
    PyObject *buffer, *open;
    long long base_offset;
    struct maker maker = {.type = type_of(module, MESSAGE)};
    if (!PyArg_ParseTuple(args, "OLUOOO", &buffer, &base_offset, &maker.origin.topic,
                          &maker.origin.partition, &open, &maker.origin.make))
        return NULL;
    return decoded(module, buffer, base_offset, open, &maker);
}

static int put_payloads(const struct reading *reading, PyObject *list) {
    size_t message = 0, wrapper = 0;
    for (size_t n = 0; n < reading->entries.count; n++) {
        const struct entry *entry = entry_at(reading, n);
        if (!entry->codec) {
            PyObject *payload = payload_object(reading, entry);
            if (!payload || PyList_SetItem(list, (Py_ssize_t)message++, payload) < 0)
                return -1;
            continue;
        }
        PyObject *payloads = unfolded_at(reading, wrapper++);
        Py_ssize_t count = PyTuple_Size(payloads);
        for (Py_ssize_t inner = 0; inner < count; inner++)
            if (PyList_SetItem(list, (Py_ssize_t)message++,
                               Py_NewRef(PyTuple_GetItem(payloads, inner))) < 0)
                return -1;
    }
    return 0;
}

PyObject *codec_payloads(PyObject *module, PyObject *args) {
    PyObject *buffer, *open, *list = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "OO", &buffer, &open))
        return NULL;
    struct reading reading = {0};
    if (reading_open(&reading, buffer, CRC_STOP) == 0 &&
        reading_run(&reading, open, &UNLIMITED) == 0)
        list = PyList_New((Py_ssize_t)reading.message_count);
    if (list && put_payloads(&reading, list) == 0)
        result = Py_BuildValue("OnO", list, (Py_ssize_t)reading.walk.position,
                               fault_object(module, reading.walk.fault));
    Py_XDECREF(list);
    reading_close(&reading);
    return result;
}

static uint8_t *put_object(uint8_t *out, PyObject *bytes) {
    return put_bytes(out, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
}

/* Writes every payload and a delimiter behind it. Holds the lock if there are wrappers. */
static void write_text(const struct reading *reading, const Py_buffer *delimiter, uint8_t *out) {
    size_t left = reading->message_count, wrapper = 0, size = (size_t)delimiter->len;
    for (size_t n = 0; n < reading->entries.count; n++) {
        const struct entry *entry = entry_at(reading, n);
        if (!entry->codec) {
            out = put_bytes(out, payload_of(reading->walk.data, entry), payload_bytes(entry));
            out = put_bytes(out, delimiter->buf, size);
            left--;
            continue;
        }
        PyObject *payloads = unfolded_at(reading, wrapper++);
        size_t count = (size_t)PyTuple_Size(payloads);
        for (size_t inner = 0; inner < count && left; inner++, left--) {
            out = put_object(out, PyTuple_GetItem(payloads, (Py_ssize_t)inner));
            out = put_bytes(out, delimiter->buf, size);
        }
    }
}

static PyObject *text_of(const struct reading *reading, const Py_buffer *delimiter) {
    size_t size = (size_t)delimiter->len, count = reading->message_count;
    size_t total = reading->value_bytes + reading->cut_bytes;
    if (total > PY_SSIZE_T_MAX || (size && count > (PY_SSIZE_T_MAX - total) / size))
        return PyErr_NoMemory();
    PyObject *text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(total + count * size));
    if (!text)
        return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AsString(text);
    PyThreadState *unlocked = unlock_for_copy(reading);
    write_text(reading, delimiter, out);
    lock_again(unlocked);
    return text;
}

PyObject *codec_decode_delimited(PyObject *module, PyObject *args) {
    PyObject *buffer, *open, *text = NULL;
    Py_buffer delimiter;
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "Oy*nO", &buffer, &delimiter, &limit, &open))
        return NULL;
    struct limits limits = {limit < 0 ? SIZE_MAX : (size_t)limit, SIZE_MAX};
    struct reading reading = {0};
    if (reading_open(&reading, buffer, CRC_STOP) == 0 && reading_run(&reading, open, &limits) == 0)
        text = text_of(&reading, &delimiter);
    PyObject *result = NULL;
    if (text)
        result = new_result(module, DECODED_TEXT, "NnnO", text,
                            (Py_ssize_t)reading.walk.position, (Py_ssize_t)reading.message_count,
                            fault_object(module, reading.walk.fault));
    PyBuffer_Release(&delimiter);
    reading_close(&reading);
    return result;
}
