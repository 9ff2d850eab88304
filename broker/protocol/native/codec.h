/* Shared by all files that use Python: result types and the interpreter's lock. */
#ifndef PYLOGCTL_CODEC_H
#define PYLOGCTL_CODEC_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <limits.h>
#include <string.h>

#include "walk.h"

/* The types imported from message.py and record_batch.py, and the one that is made here. */
enum type {
    FAULT,
    SCAN,
    ENCODED_TEXT,
    DECODED,
    DECODED_TEXT,
    COLUMNS,
    OVERSIZE_PIECE_ERROR,
    MESSAGE_SIZE_ERROR,
    RECORD_BATCH,
    BATCH_SCAN,
    RECORD,
    DECODED_RECORDS,
    RECORD_COLUMNS,
    IMPORTED_TYPE_COUNT,
    MESSAGE = IMPORTED_TYPE_COUNT,
    TYPE_COUNT,
};

/* Returns a type, borrowed. */
PyObject *type_of(PyObject *module, enum type type);

/* Returns a named tuple, its values as for Py_BuildValue; consumes what comes as "N". */
PyObject *new_result(PyObject *module, enum type type, const char *format, ...);

/* Returns a member of `Fault`, borrowed. */
PyObject *fault_object(PyObject *module, enum fault fault);

/* Lets other threads run Python if the work is worth it; gives what `lock_again` needs. */
PyThreadState *unlock_for(size_t bytes);
void lock_again(PyThreadState *unlocked);

/* Copies bytes, if any; returns the end of the copy. */
static inline uint8_t *put_bytes(uint8_t *out, const void *data, size_t size) {
    if (size)
        memcpy(out, data, size);
    return out + size;
}

PyObject *codec_scan(PyObject *module, PyObject *buffer);
PyObject *codec_find_entry(PyObject *module, PyObject *args);
PyObject *codec_boundaries(PyObject *module, PyObject *args);
PyObject *codec_single_appends(PyObject *module, PyObject *args);
PyObject *codec_publish_responses(PyObject *module, PyObject *args);
PyObject *codec_encode(PyObject *module, PyObject *payloads);
PyObject *codec_encode_delimited(PyObject *module, PyObject *args);
PyObject *codec_decode(PyObject *module, PyObject *args);
PyObject *codec_decode_messages(PyObject *module, PyObject *args);
PyObject *codec_payloads(PyObject *module, PyObject *args);
PyObject *codec_decode_delimited(PyObject *module, PyObject *args);
PyObject *codec_decode_columns(PyObject *module, PyObject *args);
PyObject *codec_count_byte(PyObject *module, PyObject *args);
PyObject *codec_scan_batches(PyObject *module, PyObject *buffer);
PyObject *codec_verify_batches(PyObject *module, PyObject *args);
PyObject *codec_decode_records(PyObject *module, PyObject *args);
PyObject *codec_decode_record_columns(PyObject *module, PyObject *args);
PyObject *codec_encode_records(PyObject *module, PyObject *args);
PyObject *codec_stamp_batches(PyObject *module, PyObject *args);

#endif
