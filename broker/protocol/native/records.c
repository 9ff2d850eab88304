/* Record batches as Python values: scanned, decoded, as columns, encoded and stamped. */

#include <stdlib.h>

#include "batch.h"
#include "codec.h"
#include "crc32.h"

static PyObject *batch_object(PyObject *module, const struct batch *one) {
    return new_result(module, RECORD_BATCH, "nniLiIiiLLLiii", (Py_ssize_t)one->position,
                      (Py_ssize_t)one->size, (int)one->magic, (long long)one->base_offset,
                      (int)one->leader_epoch, (unsigned)one->crc, (int)one->attributes,
                      (int)one->last_offset_delta, (long long)one->base_timestamp,
                      (long long)one->max_timestamp, (long long)one->producer_id,
                      (int)one->producer_epoch, (int)one->base_sequence, (int)one->record_count);
}

/* Reads batches up to a fault; false if there is no memory. */
static bool scan(const Py_buffer *view, struct batches *batches, size_t *position,
                 enum fault *fault) {
    *fault = FAULT_NONE;
    while (*position < (size_t)view->len) {
        struct batch batch;
        *fault = read_batch(view->buf, (size_t)view->len, *position, &batch);
        if (*fault)
            return true;
        if (!add_batch(batches, &batch))
            return false;
        *position += batch.size;
    }
    return true;
}

/* Returns a BatchScan, and frees the batches; without memory it raises. */
static PyObject *scan_object(PyObject *module, struct batches *batches, size_t position,
                             enum fault fault, bool has_memory) {
    PyObject *list = has_memory ? PyList_New((Py_ssize_t)batches->count) : PyErr_NoMemory();
    for (size_t n = 0; list && n < batches->count; n++) {
        PyObject *batch = batch_object(module, batches->items + n);
        if (!batch || PyList_SetItem(list, (Py_ssize_t)n, batch) < 0)
            Py_CLEAR(list);
    }
    free(batches->items);
    if (!list)
        return NULL;
    return new_result(module, BATCH_SCAN, "NnO", list, (Py_ssize_t)position,
                      fault_object(module, fault));
}

PyObject *codec_scan_batches(PyObject *module, PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    struct batches batches = {0};
    size_t position = 0;
    enum fault fault;
    PyThreadState *unlocked = unlock_for((size_t)view.len);
    bool has_memory = scan(&view, &batches, &position, &fault);
    lock_again(unlocked);
    PyBuffer_Release(&view);
    return scan_object(module, &batches, position, fault, has_memory);
}

/* Records under decoding; `opened` keeps what they point into. */
struct decoding {
    Py_buffer view;
    PyObject *opened;
    struct records records;
    size_t position;
    size_t left_bytes;
    bool with_control;
    enum fault fault;
};

/* Where decoding stands: at its end, before a compressed batch, or after an error. */
enum stand { AT_END, AT_COMPRESSED, FAILED };

/* Takes a good batch, unless that exceeds the limit; false if the walk ends. */
static bool take(struct decoding *decoding, const struct batch *batch, struct field content,
                 enum stand *stand) {
    struct records *records = &decoding->records;
    size_t count = records->count, header_count = records->header_count;
    size_t size = batch->magic < BATCH_MAGIC && !is_compressed(batch) ? batch->size : content.size;
    *stand = AT_END;
    if (!parse_batch(batch, content, records, &decoding->fault)) {
        *stand = FAILED;
        return false;
    }
    if (decoding->fault)
        return false;
    size += BATCH_HEADER_COST * (records->header_count - header_count);
    bool is_too_much = decoding->position && size > decoding->left_bytes;
    if (is_too_much || (is_control(batch) && !decoding->with_control)) {
        records->count = count;
        records->header_count = header_count;
    }
    if (is_too_much)
        return false;
    decoding->left_bytes -= size < decoding->left_bytes ? size : decoding->left_bytes;
    decoding->position = batch->position + batch->size;
    return true;
}

/* Returns what `parse_batch` needs of a batch that is not compressed. */
static struct field plain_content(const uint8_t *data, const struct batch *batch) {
    struct field content = {data, 0};
    if (batch->magic == BATCH_MAGIC) {
        content.data += batch->position + BATCH_HEADER_BYTES;
        content.size = batch->size - BATCH_HEADER_BYTES;
    }
    return content;
}

/* Decodes up to a compressed batch, without Python. */
static enum stand decode_plain(struct decoding *decoding, struct batch *batch) {
    const uint8_t *data = decoding->view.buf;
    size_t size = (size_t)decoding->view.len;
    enum stand stand = AT_END;
    while (decoding->position < size) {
        decoding->fault = read_batch(data, size, decoding->position, batch);
        if (decoding->fault)
            break;
        if (is_compressed(batch))
            return AT_COMPRESSED;
        if (!take(decoding, batch, plain_content(data, batch), &stand))
            break;
    }
    return stand;
}

/* Has Python decompress a batch; returns new `bytes`, None if it is broken. */
static PyObject *open_batch(const struct decoding *decoding, const struct batch *batch,
                            PyObject *open) {
    const uint8_t *data = decoding->view.buf;
    struct field key, content = {data + batch->position + BATCH_HEADER_BYTES, 0};
    if (batch->magic == BATCH_MAGIC)
        content.size = batch->size - BATCH_HEADER_BYTES;
    else if (!key_and_value(data, batch, &key, &content) || !content.data)
        return Py_NewRef(Py_None);
    return PyObject_CallFunction(open, "iiy#", (int)batch->attributes, (int)batch->magic,
                                 content.data, (Py_ssize_t)content.size);
}

/* Decodes a compressed batch; false if the walk ends. */
static bool decode_compressed(struct decoding *decoding, const struct batch *batch, PyObject *open,
                              enum stand *stand) {
    PyObject *opened = open_batch(decoding, batch, open);
    struct field content = {NULL, 0};
    bool goes_on = false;
    *stand = FAILED;
    if (opened == Py_None) {
        decoding->fault = FAULT_COMPRESSED;
        *stand = AT_END;
    } else if (opened && PyList_Append(decoding->opened, opened) == 0) {
        content.data = (const uint8_t *)PyBytes_AsString(opened);
        content.size = content.data ? (size_t)PyBytes_Size(opened) : 0;
        if (content.data)
            goes_on = take(decoding, batch, content, stand);
    }
    Py_XDECREF(opened);
    return goes_on;
}

/* Decodes batches up to a fault or the limit; -1 with an exception set. To be closed in any case. */
static int decode(struct decoding *decoding, PyObject *buffer, int with_control,
                  Py_ssize_t max_bytes, PyObject *open) {
    if (max_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "max_bytes is at least 0");
        return -1;
    }
    decoding->opened = PyList_New(0);
    if (!decoding->opened || PyObject_GetBuffer(buffer, &decoding->view, PyBUF_SIMPLE) < 0)
        return -1;
    decoding->left_bytes = max_bytes < INT32_MAX ? (size_t)max_bytes : INT32_MAX;
    decoding->with_control = with_control;
    struct batch batch;
    enum stand stand;
    bool goes_on;
    do {
        PyThreadState *unlocked = unlock_for((size_t)decoding->view.len - decoding->position);
        stand = decode_plain(decoding, &batch);
        lock_again(unlocked);
        goes_on = stand == AT_COMPRESSED && decode_compressed(decoding, &batch, open, &stand);
    } while (goes_on);
    if (stand == FAILED && !PyErr_Occurred())
        PyErr_NoMemory();
    return stand == FAILED ? -1 : 0;
}

static void decoding_close(struct decoding *decoding) {
    if (decoding->view.obj)
        PyBuffer_Release(&decoding->view);
    Py_XDECREF(decoding->opened);
    free(decoding->records.items);
    free(decoding->records.headers);
}

/* Validates the records of a batch, and takes it; false if the walk ends. */
static bool verify(struct decoding *decoding, struct batches *batches, struct batch *batch,
                   struct field content, enum stand *stand) {
    struct records *records = &decoding->records;
    records->count = records->header_count = 0;
    records->max_timestamp = INT64_MIN;
    *stand = FAILED;
    if (!parse_batch(batch, content, records, &decoding->fault))
        return false;
    if (!decoding->fault && records->count && !has_other_timestamps(batch) &&
        records->max_timestamp != batch->max_timestamp)
        decoding->fault = FAULT_TIMESTAMPS;
    if (!decoding->fault) {
        batch->record_count = (int32_t)records->count;
        if (!add_batch(batches, batch))
            return false;
        decoding->position += batch->size;
    }
    *stand = AT_END;
    return !decoding->fault;
}

/* Validates up to a compressed batch, which is passed over unless it is to be opened. */
static enum stand verify_plain(struct decoding *decoding, struct batches *batches,
                               struct batch *batch, bool opens) {
    const uint8_t *data = decoding->view.buf;
    size_t size = (size_t)decoding->view.len;
    enum stand stand = AT_END;
    bool goes_on = true;
    while (goes_on && decoding->position < size) {
        decoding->fault = read_batch(data, size, decoding->position, batch);
        if (decoding->fault)
            break;
        if (!is_compressed(batch)) {
            goes_on = verify(decoding, batches, batch, plain_content(data, batch), &stand);
        } else if (opens) {
            return AT_COMPRESSED;
        } else if (add_batch(batches, batch)) {
            decoding->position += batch->size;
        } else {
            return FAILED;
        }
    }
    return stand;
}

/* Opens and validates a compressed batch; false if the walk ends. */
static bool verify_compressed(struct decoding *decoding, struct batches *batches,
                              struct batch *batch, PyObject *open, enum stand *stand) {
    PyObject *opened = open_batch(decoding, batch, open);
    bool goes_on = false;
    *stand = FAILED;
    if (opened == Py_None) {
        decoding->fault = FAULT_COMPRESSED;
        *stand = AT_END;
    } else if (opened && PyBytes_AsString(opened)) {
        struct field content = {(const uint8_t *)PyBytes_AsString(opened),
                                (size_t)PyBytes_Size(opened)};
        PyThreadState *unlocked = unlock_for(content.size);
        goes_on = verify(decoding, batches, batch, content, stand);
        lock_again(unlocked);
    }
    Py_XDECREF(opened);
    return goes_on;
}

PyObject *codec_verify_batches(PyObject *module, PyObject *args) {
    PyObject *buffer, *open;
    struct decoding decoding = {0};
    if (!PyArg_ParseTuple(args, "OO", &buffer, &open) ||
        PyObject_GetBuffer(buffer, &decoding.view, PyBUF_SIMPLE) < 0)
        return NULL;
    decoding.records.only_counts = true;
    struct batches batches = {0};
    struct batch batch;
    enum stand stand;
    bool goes_on;
    do {
        PyThreadState *unlocked = unlock_for((size_t)decoding.view.len - decoding.position);
        stand = verify_plain(&decoding, &batches, &batch, open != Py_None);
        lock_again(unlocked);
        goes_on = stand == AT_COMPRESSED &&
                  verify_compressed(&decoding, &batches, &batch, open, &stand);
    } while (goes_on);
    PyBuffer_Release(&decoding.view);
    if (!PyErr_Occurred())
        return scan_object(module, &batches, decoding.position, decoding.fault, stand != FAILED);
    free(batches.items);
    return NULL;
}

static PyObject *field_object(const struct field *field) {
    if (!field->data)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)field->data, (Py_ssize_t)field->size);
}

static PyObject *headers_object(const struct records *records, const struct record *record) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)record->header_count);
    for (size_t n = 0; tuple && n < record->header_count; n++) {
        const struct header *header = records->headers + record->first_header + n;
        PyObject *name = PyUnicode_DecodeUTF8((const char *)header->name.data,
                                              (Py_ssize_t)header->name.size, "replace");
        PyObject *content = field_object(&header->content);
        PyObject *pair = name && content ? PyTuple_Pack(2, name, content) : NULL;
        Py_XDECREF(name);
        Py_XDECREF(content);
        if (!pair || PyTuple_SetItem(tuple, (Py_ssize_t)n, pair) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *record_object(PyObject *module, const struct records *records,
                               const struct record *record) {
    PyObject *key = field_object(&record->key), *value = field_object(&record->value);
    PyObject *headers = headers_object(records, record), *made = NULL;
    if (key && value && headers)
        made = new_result(module, RECORD, "LLOOO", (long long)record->offset,
                          (long long)record->timestamp, key, value, headers);
    Py_XDECREF(key);
    Py_XDECREF(value);
    Py_XDECREF(headers);
    return made;
}

PyObject *codec_decode_records(PyObject *module, PyObject *args) {
    PyObject *buffer, *open, *list = NULL, *result = NULL;
    int with_control;
    Py_ssize_t max_bytes;
    if (!PyArg_ParseTuple(args, "OpnO", &buffer, &with_control, &max_bytes, &open))
        return NULL;
    struct decoding decoding = {0};
    if (decode(&decoding, buffer, with_control, max_bytes, open) == 0)
        list = PyList_New((Py_ssize_t)decoding.records.count);
    for (size_t n = 0; list && n < decoding.records.count; n++) {
        PyObject *record = record_object(module, &decoding.records, decoding.records.items + n);
        if (!record || PyList_SetItem(list, (Py_ssize_t)n, record) < 0)
            Py_CLEAR(list);
    }
    if (list)
        result = new_result(module, DECODED_RECORDS, "NnO", list, (Py_ssize_t)decoding.position,
                            fault_object(module, decoding.fault));
    decoding_close(&decoding);
    return result;
}

/* Fields of the same kind in an array of records or headers. */
struct fields {
    const struct field *first;
    size_t stride;
    size_t count;
};

static const struct field *field_at(const struct fields *fields, size_t n) {
    return (const struct field *)((const char *)fields->first + n * fields->stride);
}

static size_t fields_bytes(const struct fields *fields) {
    size_t total = 0;
    for (size_t n = 0; n < fields->count; n++)
        total += field_at(fields, n)->size;
    return total;
}

/* Writes where each field starts and their bytes, and which are not null, as far as wanted. */
static void put_fields(const struct fields *fields, uint8_t *const *out) {
    uint8_t *offsets = out[0], *data = out[1], *validity = out[2];
    int32_t end = 0;
    if (offsets)
        memcpy(offsets, &end, sizeof end);
    for (size_t n = 0; n < fields->count; n++) {
        const struct field *field = field_at(fields, n);
        end += (int32_t)field->size;
        if (offsets)
            memcpy(offsets + (n + 1) * sizeof end, &end, sizeof end);
        if (data)
            data = put_bytes(data, field->data, field->size);
        if (validity && field->data)
            validity[n / 8] |= (uint8_t)(1u << n % 8);
    }
}

/* The columns in their order; a group of fields has three, of which header keys lack the last. */
enum column {
    OFFSETS,
    TIMESTAMPS,
    KEYS,
    VALUES = KEYS + 3,
    HEADER_OFFSETS = VALUES + 3,
    HEADER_KEYS,
    HEADER_VALUES = HEADER_KEYS + 2,
    COLUMN_COUNT = HEADER_VALUES + 3,
};

static void put_columns(const struct records *records, const struct fields *groups,
                        uint8_t *const *out) {
    uint8_t *no_validity[] = {out[HEADER_KEYS], out[HEADER_KEYS + 1], NULL};
    uint8_t *const *places[] = {out + KEYS, out + VALUES, no_validity, out + HEADER_VALUES};
    for (int n = 0; n < 4; n++)
        put_fields(groups + n, places[n]);
    int32_t end = 0;
    if (out[HEADER_OFFSETS])
        memcpy(out[HEADER_OFFSETS], &end, sizeof end);
    for (size_t n = 0; n < records->count; n++) {
        const struct record *record = records->items + n;
        end += (int32_t)record->header_count;
        if (out[OFFSETS])
            memcpy(out[OFFSETS] + n * sizeof(int64_t), &record->offset, sizeof(int64_t));
        if (out[TIMESTAMPS])
            memcpy(out[TIMESTAMPS] + n * sizeof(int64_t), &record->timestamp, sizeof(int64_t));
        if (out[HEADER_OFFSETS])
            memcpy(out[HEADER_OFFSETS] + (n + 1) * sizeof end, &end, sizeof end);
    }
}

static PyObject *columns_of(PyObject *module, const struct decoding *decoding, unsigned wanted) {
    const struct records *records = &decoding->records;
    static const struct record no_record;
    static const struct header no_header;
    const struct record *record = records->items ? records->items : &no_record;
    const struct header *header = records->headers ? records->headers : &no_header;
    const struct fields groups[] = {
        {&record->key, sizeof *record, records->count},
        {&record->value, sizeof *record, records->count},
        {&header->name, sizeof *header, records->header_count},
        {&header->content, sizeof *header, records->header_count},
    };
    size_t rows = records->count, headers = records->header_count;
    size_t sizes[COLUMN_COUNT] = {rows * sizeof(int64_t), rows * sizeof(int64_t)};
    const int starts[] = {KEYS, VALUES, HEADER_KEYS, HEADER_VALUES};
    for (int n = 0; n < 4; n++) {
        sizes[starts[n]] = (groups[n].count + 1) * sizeof(int32_t);
        sizes[starts[n] + 1] = fields_bytes(groups + n);
        if (starts[n] != HEADER_KEYS)
            sizes[starts[n] + 2] = (groups[n].count + 7) / 8;
    }
    sizes[HEADER_OFFSETS] = (rows + 1) * sizeof(int32_t);
    PyObject *made[COLUMN_COUNT];
    uint8_t *out[COLUMN_COUNT];
    size_t total = headers;
    for (int n = 0; n < COLUMN_COUNT; n++) {
        size_t size = wanted >> n & 1 ? sizes[n] : 0;
        made[n] = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
        if (!made[n]) {
            while (n)
                Py_DECREF(made[--n]);
            return NULL;
        }
        out[n] = size ? (uint8_t *)PyBytes_AsString(made[n]) : NULL;
        total += size;
    }
    const int bitmaps[] = {KEYS + 2, VALUES + 2, HEADER_VALUES + 2};
    for (int n = 0; n < 3; n++)
        if (out[bitmaps[n]])
            memset(out[bitmaps[n]], 0, sizes[bitmaps[n]]);
    PyThreadState *unlocked = unlock_for(total);
    put_columns(records, groups, out);
    lock_again(unlocked);
    return new_result(module, RECORD_COLUMNS, "nnONNNNNNNNNNNNNN", (Py_ssize_t)rows,
                      (Py_ssize_t)decoding->position, fault_object(module, decoding->fault),
                      made[0], made[1], made[2], made[3], made[4], made[5], made[6], made[7],
                      made[8], made[9], made[10], made[11], made[12], made[13]);
}

PyObject *codec_decode_record_columns(PyObject *module, PyObject *args) {
    PyObject *buffer, *open, *result = NULL;
    Py_ssize_t max_bytes;
    unsigned wanted;
    if (!PyArg_ParseTuple(args, "OnIO", &buffer, &max_bytes, &wanted, &open))
        return NULL;
    struct decoding decoding = {0};
    if (decode(&decoding, buffer, 0, max_bytes, open) == 0)
        result = columns_of(module, &decoding, wanted);
    decoding_close(&decoding);
    return result;
}

/* Bytes under construction. */
struct output {
    uint8_t *data;
    size_t size;
    size_t room;
};

static int reserve(struct output *output, size_t more) {
    if (more <= output->room - output->size)
        return 0;
    size_t room = output->size + more;
    room += room / 2 + 256;
    uint8_t *moved = realloc(output->data, room);
    if (!moved) {
        PyErr_NoMemory();
        return -1;
    }
    output->data = moved;
    output->room = room;
    return 0;
}

enum { MAX_VARINT_BYTES = 10 };

static size_t put_varint(uint8_t *out, int64_t number) {
    uint64_t value = (uint64_t)number << 1 ^ (0 - ((uint64_t)number >> 63));
    size_t size = 0;
    for (; value > 0x7F; value >>= 7)
        out[size++] = (uint8_t)(value | 0x80);
    out[size++] = (uint8_t)value;
    return size;
}

static int write_varint(struct output *output, int64_t number) {
    if (reserve(output, MAX_VARINT_BYTES) < 0)
        return -1;
    output->size += put_varint(output->data + output->size, number);
    return 0;
}

static int write_bytes(struct output *output, const char *data, Py_ssize_t size) {
    if (write_varint(output, size) < 0 || reserve(output, (size_t)size) < 0)
        return -1;
    put_bytes(output->data + output->size, data, (size_t)size);
    output->size += (size_t)size;
    return 0;
}

/* Writes `bytes` or None. */
static int write_field(struct output *output, PyObject *field) {
    char *data;
    Py_ssize_t size;
    if (field == Py_None)
        return write_varint(output, -1);
    return PyBytes_AsStringAndSize(field, &data, &size) < 0 ? -1 : write_bytes(output, data, size);
}

static int write_headers(struct output *output, PyObject *headers) {
    PyObject *tuple = PySequence_Tuple(headers);
    if (!tuple)
        return -1;
    Py_ssize_t count = PyTuple_Size(tuple);
    int failed = write_varint(output, count);
    for (Py_ssize_t n = 0; !failed && n < count; n++) {
        PyObject *name, *content;
        Py_ssize_t size;
        const char *text = NULL;
        if (PyArg_ParseTuple(PyTuple_GetItem(tuple, n), "UO", &name, &content))
            text = PyUnicode_AsUTF8AndSize(name, &size);
        failed = !text || write_bytes(output, text, size) < 0 || write_field(output, content) < 0;
    }
    Py_DECREF(tuple);
    return failed ? -1 : 0;
}

static int refuse(const char *text) {
    PyErr_SetString(PyExc_ValueError, text);
    return -1;
}

/* Writes a record whose offset delta is larger than `last`, which becomes that. */
static int write_record(struct output *output, PyObject *record, long long base_offset,
                        long long base_timestamp, long long *last) {
    long long offset, timestamp;
    PyObject *key, *value, *headers;
    if (!PyArg_ParseTuple(record, "LLOOO", &offset, &timestamp, &key, &value, &headers))
        return -1;
    if (offset < base_offset || (unsigned long long)offset - (unsigned long long)base_offset >
                                    INT32_MAX)
        return refuse("the offsets of records rise from the base offset on");
    long long delta = offset - base_offset;
    if (delta <= *last)
        return refuse("the offsets of records rise from the base offset on");
    *last = delta;
    if (base_timestamp < 0 ? timestamp > LLONG_MAX + base_timestamp
                           : timestamp < LLONG_MIN + base_timestamp)
        return refuse("the timestamps of records are too far from the base timestamp");
    size_t start = output->size;
    if (reserve(output, MAX_VARINT_BYTES + 1) < 0)
        return -1;
    output->size += MAX_VARINT_BYTES; /* room for the size, which is known below */
    size_t body = output->size;
    output->data[output->size++] = 0;
    if (write_varint(output, timestamp - base_timestamp) < 0 || write_varint(output, delta) < 0 ||
        write_field(output, key) < 0 || write_field(output, value) < 0 ||
        write_headers(output, headers) < 0)
        return -1;
    size_t size = output->size - body;
    if (size > INT32_MAX)
        return refuse("a record is too large for the format");
    size_t size_bytes = put_varint(output->data + start, (int64_t)size);
    memmove(output->data + start + size_bytes, output->data + body, size);
    output->size = start + size_bytes + size;
    return 0;
}

PyObject *codec_encode_records(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *records, *result = NULL;
    long long base_offset, base_timestamp, last = -1;
    if (!PyArg_ParseTuple(args, "OLL", &records, &base_offset, &base_timestamp))
        return NULL;
    PyObject *tuple = PySequence_Tuple(records);
    if (!tuple)
        return NULL;
    struct output output = {0};
    Py_ssize_t count = PyTuple_Size(tuple);
    int failed = 0;
    for (Py_ssize_t n = 0; !failed && n < count; n++)
        failed = write_record(&output, PyTuple_GetItem(tuple, n), base_offset, base_timestamp,
                              &last);
    if (!failed)
        result = PyBytes_FromStringAndSize((const char *)output.data, (Py_ssize_t)output.size);
    free(output.data);
    Py_DECREF(tuple);
    return result;
}

/* Stamps whole batches; -1 with an exception set. */
static int stamp(uint8_t *data, size_t size, long long *base_offset, int leader_epoch) {
    for (size_t position = 0; position < size;) {
        uint8_t *start = data + position;
        size_t rest = size - position;
        int32_t length = -1;
        if (rest >= BATCH_HEADER_BYTES && start[BATCH_MAGIC_AT] == BATCH_MAGIC)
            length = (int32_t)load_uint32(start + 8);
        if (length < BATCH_HEADER_BYTES - BATCH_FRONT_BYTES ||
            (size_t)length > rest - BATCH_FRONT_BYTES)
            return refuse("there is something else than whole record batches");
        int32_t delta = (int32_t)load_uint32(start + BATCH_LAST_DELTA_AT);
        if (delta < 0)
            return refuse("a record batch has no offsets");
        if (*base_offset < 0 || *base_offset >= INT64_MAX - delta) {
            PyErr_SetString(PyExc_OverflowError, "the offset after the last record exceeds 64 bits");
            return -1;
        }
        store_uint64(start, (uint64_t)*base_offset);
        store_uint32(start + BATCH_EPOCH_AT, (uint32_t)leader_epoch);
        *base_offset += (long long)delta + 1;
        position += BATCH_FRONT_BYTES + (size_t)length;
    }
    return 0;
}

PyObject *codec_stamp_batches(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *buffer;
    Py_buffer view;
    long long base_offset;
    int leader_epoch;
    if (!PyArg_ParseTuple(args, "OLi", &buffer, &base_offset, &leader_epoch) ||
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *stamped = PyBytes_FromStringAndSize(view.buf, view.len);
    PyBuffer_Release(&view);
    if (!stamped)
        return NULL;
    uint8_t *data = (uint8_t *)PyBytes_AsString(stamped);
    if (stamp(data, (size_t)PyBytes_Size(stamped), &base_offset, leader_epoch) < 0) {
        Py_DECREF(stamped);
        return NULL;
    }
    return Py_BuildValue("NL", stamped, base_offset);
}
