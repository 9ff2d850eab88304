/* Message sets as columns, in the form that Arrow arrays have in memory. */

#include "crc32.h"
#include "reading.h"

/* The columns, each in a `bytes` of its own; `out` are pointers into those. */
enum column {
    OFFSETS,
    NEXT_OFFSETS,
    INNER,
    ATTRIBUTES,
    CRCS,
    VALUE_OFFSETS,
    VALUES,
    CRC_OK,
    COLUMN_COUNT,
};

struct columns {
    PyObject *objects[COLUMN_COUNT];
    uint8_t *out[COLUMN_COUNT]; /* NULL for a column that is not wanted */
    int64_t base_offset;
    size_t rows;
    size_t value_bytes;
};

static void columns_release(struct columns *columns) {
    for (int n = 0; n < COLUMN_COUNT; n++)
        Py_CLEAR(columns->objects[n]);
}

/* Makes the columns whose bits are set in `wanted`; the others stay empty. */
static int columns_allocate(struct columns *columns, const struct reading *reading,
                            unsigned wanted) {
    size_t rows = reading->message_count;
    if (reading->value_bytes > INT32_MAX || rows > PY_SSIZE_T_MAX / sizeof(int64_t) - 1) {
        PyErr_SetString(PyExc_OverflowError, "the payloads exceed 32-bit value offsets");
        return -1;
    }
    size_t sizes[COLUMN_COUNT] = {
        [OFFSETS] = rows * sizeof(int64_t),
        [NEXT_OFFSETS] = rows * sizeof(int64_t),
        [INNER] = rows * sizeof(int32_t),
        [ATTRIBUTES] = rows,
        [CRCS] = rows * sizeof(uint32_t),
        [VALUE_OFFSETS] = (rows + 1) * sizeof(int32_t),
        [VALUES] = reading->value_bytes,
        [CRC_OK] = reading->check == CRC_MARK ? (rows + 7) / 8 : 0,
    };
    for (int n = 0; n < COLUMN_COUNT; n++) {
        bool is_wanted = wanted >> n & 1;
        Py_ssize_t size = is_wanted ? (Py_ssize_t)sizes[n] : 0;
        columns->objects[n] = PyBytes_FromStringAndSize(NULL, size);
        if (!columns->objects[n])
            return -1;
        if (is_wanted)
            columns->out[n] = (uint8_t *)PyBytes_AsString(columns->objects[n]);
    }
    if (columns->out[CRC_OK])
        memset(columns->out[CRC_OK], 0, sizes[CRC_OK]);
    if (columns->out[VALUE_OFFSETS])
        memset(columns->out[VALUE_OFFSETS], 0, sizeof(int32_t));
    return 0;
}

static void put_in(struct columns *columns, enum column column, const void *data, size_t size) {
    if (columns->out[column])
        columns->out[column] = put_bytes(columns->out[column], data, size);
}

/* Adds a row, `inner` being the message's place in the entry. */
static void put_row(struct columns *columns, const struct entry *entry, int32_t inner, bool is_last,
                    const uint8_t *value, size_t size, uint32_t crc) {
    int64_t offset = columns->base_offset + (int64_t)entry->start;
    int64_t next = is_last ? columns->base_offset + (int64_t)entry->end : offset;
    put_in(columns, OFFSETS, &offset, sizeof offset);
    put_in(columns, NEXT_OFFSETS, &next, sizeof next);
    put_in(columns, INNER, &inner, sizeof inner);
    put_in(columns, ATTRIBUTES, &entry->attributes, 1);
    put_in(columns, CRCS, &crc, sizeof crc);
    put_in(columns, VALUES, value, size);
    columns->value_bytes += size;
    int32_t value_end = (int32_t)columns->value_bytes;
    if (columns->out[VALUE_OFFSETS])
        memcpy(columns->out[VALUE_OFFSETS] + (columns->rows + 1) * sizeof value_end, &value_end,
               sizeof value_end);
    columns->rows++;
}

static void mark_good(struct columns *columns, size_t row) {
    columns->out[CRC_OK][row / 8] |= (uint8_t)(1u << row % 8);
}

/* Fills the columns. Holds the lock if there are wrappers. */
static void put_rows(struct columns *columns, const struct reading *reading) {
    bool marks = columns->out[CRC_OK] && reading->check == CRC_MARK;
    size_t wrapper = 0;
    for (size_t n = 0; n < reading->entries.count; n++) {
        const struct entry *entry = entry_at(reading, n);
        size_t first_row = columns->rows;
        if (entry->codec) {
            PyObject *payloads = unfolded_at(reading, wrapper++);
            Py_ssize_t count = PyTuple_Size(payloads);
            for (Py_ssize_t inner = 0; inner < count; inner++) {
                PyObject *payload = PyTuple_GetItem(payloads, inner);
                const uint8_t *value = (const uint8_t *)PyBytes_AsString(payload);
                size_t size = (size_t)PyBytes_Size(payload);
                uint32_t crc = columns->out[CRCS] ? crc32_of(0, value, size) : 0;
                put_row(columns, entry, (int32_t)inner, inner == count - 1, value, size, crc);
            }
        } else {
            const uint8_t *value = payload_of(reading->walk.data, entry);
            put_row(columns, entry, 0, true, value, payload_bytes(entry), load_uint32(value - 4));
        }
        for (size_t row = first_row; marks && entry->is_good && row < columns->rows; row++)
            mark_good(columns, row);
    }
}

static PyObject *columns_of(PyObject *module, const struct reading *reading, int64_t base_offset,
                            unsigned wanted) {
    struct columns columns = {.base_offset = base_offset};
    if (columns_allocate(&columns, reading, wanted) < 0) {
        columns_release(&columns);
        return NULL;
    }
    PyThreadState *unlocked = unlock_for_copy(reading);
    put_rows(&columns, reading);
    lock_again(unlocked);
    PyObject **made = columns.objects;
    return new_result(module, COLUMNS, "nnONNNNNNNN", (Py_ssize_t)reading->message_count,
                      (Py_ssize_t)reading->walk.position,
                      fault_object(module, reading->walk.fault), made[OFFSETS],
                      made[NEXT_OFFSETS], made[INNER], made[ATTRIBUTES], made[CRCS],
                      made[VALUE_OFFSETS], made[VALUES], made[CRC_OK]);
}

PyObject *codec_decode_columns(PyObject *module, PyObject *args) {
    PyObject *buffer, *open, *result = NULL;
    long long base_offset;
    int check;
    Py_ssize_t max_value_bytes;
    unsigned wanted;
    if (!PyArg_ParseTuple(args, "OLinIO", &buffer, &base_offset, &check, &max_value_bytes, &wanted,
                          &open))
        return NULL;
    if (max_value_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "max_value_bytes is at least 0");
        return NULL;
    }
    if (max_value_bytes > INT32_MAX)
        max_value_bytes = INT32_MAX;
    struct limits limits = {SIZE_MAX, (size_t)max_value_bytes};
    struct reading reading = {0};
    if (reading_open(&reading, buffer, (enum crc_check)check) == 0 &&
        check_offsets(&reading, base_offset) == 0 && reading_run(&reading, open, &limits) == 0)
        result = columns_of(module, &reading, base_offset, wanted);
    reading_close(&reading);
    return result;
}
