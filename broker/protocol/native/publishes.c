/* Requests that append one message set each, of which a client sends many together.
 *
 *     produce: | type 0 int16 | topic | index int32 | size int32 | set |
 *     publish: | type 65 int16 | version 0 int16 | correlation id int32 | client | acks int16 |
 *              | timeout int32 | count int32 | topic | home int32 | index int32 | size int32 | set |
 *
 * A text is an int16 length and that many bytes. What stands between the correlation id, or the
 * start, and the size of the set is the head, which is the same in all requests of a run.
 */

#include "codec.h"

enum {
    SIZE_BYTES = 4,
    ID_BYTES = 4,
    PUBLISH_START_BYTES = 4,
    ACKS_AND_TIMEOUT_BYTES = 6,
    ACKS_TIMEOUT_COUNT_BYTES = 10,
    HOME_AND_INDEX_BYTES = 8,
    /* Longer heads are left to the general decoder: a cache of them would take too much memory. */
    MAX_HEAD_BYTES = 1024,
};

/* A request without its size field. */
struct frame {
    const uint8_t *data;
    size_t size;
};

/* How the requests of a run begin. */
struct start {
    size_t same_bytes; /* type, and version */
    size_t head;
    size_t set; /* behind the head and the size of the set */
};

/* Returns the position behind a text at `position`; SIZE_MAX if it is cut off, or null. */
static size_t behind_text(const struct frame *frame, size_t position) {
    if (position > frame->size || frame->size - position < 2)
        return SIZE_MAX;
    size_t length = (size_t)frame->data[position] << 8 | frame->data[position + 1];
    return length > INT16_MAX ? SIZE_MAX : position + 2 + length;
}

/* Finds out how a request begins; false if it is of another kind, or cut off. */
static bool read_start(const struct frame *frame, struct start *start) {
    static const uint8_t produce[] = {0, 0}, publish[] = {0, 65, 0, 0};
    size_t end;
    if (frame->size >= sizeof publish && !memcmp(frame->data, publish, sizeof publish)) {
        start->same_bytes = sizeof publish;
        start->head = sizeof publish + ID_BYTES;
        size_t client_end = behind_text(frame, start->head);
        if (client_end == SIZE_MAX)
            return false;
        end = behind_text(frame, client_end + ACKS_TIMEOUT_COUNT_BYTES);
        if (end == SIZE_MAX)
            return false;
        if (load_uint32(frame->data + client_end + ACKS_AND_TIMEOUT_BYTES) != 1)
            return false; /* before the run is sought, which all requests of it would repeat */
        end += HOME_AND_INDEX_BYTES;
    } else if (frame->size >= sizeof produce && !memcmp(frame->data, produce, sizeof produce)) {
        start->same_bytes = sizeof produce;
        start->head = 0;
        end = behind_text(frame, sizeof produce);
        if (end == SIZE_MAX)
            return false;
        end += SIZE_BYTES; /* the index */
    } else {
        return false;
    }
    start->set = end + SIZE_BYTES;
    return end - start->head <= MAX_HEAD_BYTES && start->set <= frame->size;
}

/* Returns whether a request begins as the first one does, and has one set that ends with it. */
static bool is_alike(const struct frame *first, const struct start *start,
                     const struct frame *frame) {
    if (frame->size < start->set || memcmp(frame->data, first->data, start->same_bytes))
        return false;
    size_t head_end = start->set - SIZE_BYTES;
    if (memcmp(frame->data + start->head, first->data + start->head, head_end - start->head))
        return false;
    return load_uint32(frame->data + head_end) == frame->size - start->set;
}

/* Reads where the n-th frame is; -1 with an exception set if the bounds are not of this buffer. */
static int read_frame(const Py_buffer *view, PyObject *bounds, Py_ssize_t n, struct frame *frame) {
    Py_ssize_t start = PyLong_AsSsize_t(PyList_GetItem(bounds, n));
    Py_ssize_t end = PyLong_AsSsize_t(PyList_GetItem(bounds, n + 1));
    if (start < 0 || end > view->len || end - start < SIZE_BYTES) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "the bounds are not those of frames in the buffer");
        return -1;
    }
    frame->data = (const uint8_t *)view->buf + start + SIZE_BYTES;
    frame->size = (size_t)(end - start) - SIZE_BYTES;
    return 0;
}

/* The run under construction. */
struct run {
    Py_ssize_t end; /* of its frames */
    size_t set_bytes;
    bool are_whole;
};

/* Finds the end of a run; -1 with an exception set. */
static int find_run(const Py_buffer *view, PyObject *bounds, Py_ssize_t count,
                    const struct frame *first, const struct start *start, struct run *run) {
    struct frame frame;
    for (; run->end < count; run->end++) {
        if (read_frame(view, bounds, run->end, &frame) < 0)
            return -1;
        if (!is_alike(first, start, &frame))
            return 0;
        size_t size = frame.size - start->set;
        run->set_bytes += size;
        run->are_whole = run->are_whole && are_whole(frame.data + start->set, size);
    }
    return 0;
}

/* Returns the sets of a run, joined; that of a single request is not copied. */
static PyObject *joined(PyObject *buffer, const Py_buffer *view, PyObject *bounds,
                        Py_ssize_t first, const struct start *start, const struct run *run) {
    struct frame frame;
    if (run->end - first == 1) {
        if (read_frame(view, bounds, first, &frame) < 0)
            return NULL;
        PyObject *all = PyMemoryView_FromObject(buffer);
        Py_ssize_t position = frame.data + start->set - (const uint8_t *)view->buf;
        PyObject *set = NULL;
        if (all)
            set = PySequence_GetSlice(all, position, position + (Py_ssize_t)run->set_bytes);
        Py_XDECREF(all);
        return set;
    }
    PyObject *sets = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)run->set_bytes);
    uint8_t *out = sets ? (uint8_t *)PyBytes_AsString(sets) : NULL;
    for (Py_ssize_t n = first; sets && n < run->end; n++) {
        if (read_frame(view, bounds, n, &frame) < 0)
            Py_CLEAR(sets);
        else
            out = put_bytes(out, frame.data + start->set, frame.size - start->set);
    }
    return sets;
}

/* Returns the same four bytes of each request of a run, those at `position`. */
static PyObject *column(const Py_buffer *view, PyObject *bounds, Py_ssize_t first,
                        const struct run *run, size_t position) {
    PyObject *column = PyBytes_FromStringAndSize(NULL, (run->end - first) * 4);
    uint8_t *out = column ? (uint8_t *)PyBytes_AsString(column) : NULL;
    struct frame frame;
    for (Py_ssize_t n = first; column && n < run->end; n++) {
        if (read_frame(view, bounds, n, &frame) < 0)
            Py_CLEAR(column);
        else
            out = put_bytes(out, frame.data + position, 4);
    }
    return column;
}

static PyObject *run_of(PyObject *buffer, const Py_buffer *view, PyObject *bounds,
                        Py_ssize_t first) {
    Py_ssize_t count = PyList_Size(bounds) - 1;
    if (first < 0 || first >= count) {
        PyErr_SetString(PyExc_ValueError, "there is no such frame");
        return NULL;
    }
    struct frame frame;
    struct start start;
    struct run run = {.end = first, .are_whole = true};
    if (read_frame(view, bounds, first, &frame) < 0)
        return NULL;
    if (read_start(&frame, &start) &&
        find_run(view, bounds, count, &frame, &start, &run) < 0)
        return NULL;
    if (run.end == first)
        return Py_NewRef(Py_None);
    size_t head_bytes = start.set - SIZE_BYTES - start.head;
    return Py_BuildValue(
        "ny#NNNN", run.end, frame.data + start.head, (Py_ssize_t)head_bytes,
        start.head ? column(view, bounds, first, &run, PUBLISH_START_BYTES)
                   : PyBytes_FromStringAndSize(NULL, 0),
        column(view, bounds, first, &run, start.set - SIZE_BYTES),
        joined(buffer, view, bounds, first, &start, &run), PyBool_FromLong(run.are_whole));
}

PyObject *codec_single_appends(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *buffer, *bounds;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(args, "OO!n", &buffer, &PyList_Type, &bounds, &first))
        return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *run = run_of(buffer, &view, bounds, first);
    PyBuffer_Release(&view);
    return run;
}

/* Of a response to a publish of one set: the fields that differ. */
enum {
    RESPONSE_ID_AT = 6,      /* behind the size and the error */
    OFFSET_FROM_END = 18,    /* before the term and the text, which is empty */
    LEAST_RESPONSE_BYTES = 28,
};

static void store_int64(uint8_t *data, uint64_t value) {
    store_uint32(data, (uint32_t)(value >> 32));
    store_uint32(data + 4, (uint32_t)value);
}

static PyObject *responses(const Py_buffer *template, const Py_buffer *ids, const Py_buffer *sizes,
                           long long base_offset) {
    Py_ssize_t count = ids->len / ID_BYTES;
    if (template->len < LEAST_RESPONSE_BYTES || ids->len % ID_BYTES || sizes->len != ids->len) {
        PyErr_SetString(PyExc_ValueError, "template, ids and sizes do not fit together");
        return NULL;
    }
    const uint8_t *id = ids->buf, *size = sizes->buf;
    int64_t total = 0;
    for (Py_ssize_t n = 0; n < count; n++)
        total += load_uint32(size + n * SIZE_BYTES);
    if (base_offset > INT64_MAX - total) {
        PyErr_SetString(PyExc_OverflowError, "the offset after the last message exceeds 64 bits");
        return NULL;
    }
    if (count > PY_SSIZE_T_MAX / template->len)
        return PyErr_NoMemory();
    PyObject *frames = PyBytes_FromStringAndSize(NULL, count * template->len);
    uint8_t *out = frames ? (uint8_t *)PyBytes_AsString(frames) : NULL;
    uint64_t offset = (uint64_t)base_offset;
    for (Py_ssize_t n = 0; frames && n < count; n++) {
        uint8_t *frame = out;
        out = put_bytes(out, template->buf, (size_t)template->len);
        memcpy(frame + RESPONSE_ID_AT, id + n * ID_BYTES, ID_BYTES);
        store_int64(out - OFFSET_FROM_END, offset);
        offset += load_uint32(size + n * SIZE_BYTES);
    }
    return frames;
}

PyObject *codec_publish_responses(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer template, ids, sizes;
    long long base_offset;
    if (!PyArg_ParseTuple(args, "y*y*y*L", &template, &ids, &sizes, &base_offset))
        return NULL;
    PyObject *frames = responses(&template, &ids, &sizes, base_offset);
    PyBuffer_Release(&template);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&sizes);
    return frames;
}
