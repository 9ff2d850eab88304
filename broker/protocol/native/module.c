/* The module `broker.protocol._codec`: its functions, and the types imported from message.py. */

#include "codec.h"

#include <stdarg.h>

#include "crc32.h"
#include "message.h"

/* To be raised here and in codec.py whenever a function of this module changes. */
#define INTERFACE 11

/* Below this a walk takes less time than another thread may keep the lock once it has it. */
#define UNLOCKED_MIN_BYTES (64u << 10)

PyThreadState *unlock_for(size_t bytes) {
    return bytes >= UNLOCKED_MIN_BYTES ? PyEval_SaveThread() : NULL;
}

void lock_again(PyThreadState *unlocked) {
    if (unlocked)
        PyEval_RestoreThread(unlocked);
}

static const char *const type_names[IMPORTED_TYPE_COUNT] = {
    [FAULT] = "Fault",
    [SCAN] = "Scan",
    [ENCODED_TEXT] = "EncodedText",
    [DECODED] = "Decoded",
    [DECODED_TEXT] = "DecodedText",
    [COLUMNS] = "Columns",
    [OVERSIZE_PIECE_ERROR] = "OversizePieceError",
    [MESSAGE_SIZE_ERROR] = "MessageSizeTooLargeError",
    [RECORD_BATCH] = "RecordBatch",
    [BATCH_SCAN] = "BatchScan",
    [RECORD] = "Record",
    [DECODED_RECORDS] = "DecodedRecords",
    [RECORD_COLUMNS] = "RecordColumns",
};

struct state {
    PyObject *types[TYPE_COUNT];
    PyObject *faults; /* a tuple, by value */
    newfunc tuple_new;
};

static struct state *state_of(PyObject *module) {
    return PyModule_GetState(module);
}

PyObject *type_of(PyObject *module, enum type type) {
    return state_of(module)->types[type];
}

PyObject *fault_object(PyObject *module, enum fault fault) {
    return PyTuple_GetItem(state_of(module)->faults, (Py_ssize_t)fault);
}

/* A named tuple's own `__new__` is a Python function; the one below it takes a tuple of values. */
PyObject *new_result(PyObject *module, enum type type, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *tuple = Py_VaBuildValue(format, values);
    va_end(values);
    PyObject *args = tuple ? PyTuple_Pack(1, tuple) : NULL;
    PyObject *result = NULL;
    if (args)
        result = state_of(module)->tuple_new((PyTypeObject *)type_of(module, type), args, NULL);
    Py_XDECREF(args);
    Py_XDECREF(tuple);
    return result;
}

typedef uint32_t (*crc32_engine)(uint32_t crc, const uint8_t *data, size_t size);

static PyObject *crc32_with(PyObject *const *args, Py_ssize_t count, crc32_engine engine) {
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "crc32 takes data, and the CRC of what comes before it");
        return NULL;
    }
    uint32_t crc = count > 1 ? (uint32_t)PyLong_AsUnsignedLongMask(args[1]) : 0;
    Py_buffer data;
    if (PyErr_Occurred() || PyObject_GetBuffer(args[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyThreadState *unlocked = unlock_for((size_t)data.len);
    crc = engine(crc, data.buf, (size_t)data.len);
    lock_again(unlocked);
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

static PyObject *codec_crc32(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return crc32_with(args, count, crc32_of);
}

static PyObject *codec_crc32_by_slicing(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return crc32_with(args, count, crc32_by_slicing);
}

static PyObject *codec_crc32c(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return crc32_with(args, count, crc32c_of);
}

static PyObject *codec_crc32c_by_slicing(PyObject *module, PyObject *const *args,
                                         Py_ssize_t count) {
    (void)module;
    return crc32_with(args, count, crc32c_by_slicing);
}

/* Functions that take their arguments as an array have another type than the table has. */
#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef methods[] = {
    {"crc32", FAST(codec_crc32), NULL},
    {"crc32_by_slicing", FAST(codec_crc32_by_slicing), NULL},
    {"crc32c", FAST(codec_crc32c), NULL},
    {"crc32c_by_slicing", FAST(codec_crc32c_by_slicing), NULL},
    {"scan_batches", codec_scan_batches, METH_O, NULL},
    {"verify_batches", codec_verify_batches, METH_VARARGS, NULL},
    {"decode_records", codec_decode_records, METH_VARARGS, NULL},
    {"decode_record_columns", codec_decode_record_columns, METH_VARARGS, NULL},
    {"encode_records", codec_encode_records, METH_VARARGS, NULL},
    {"stamp_batches", codec_stamp_batches, METH_VARARGS, NULL},
    {"scan", codec_scan, METH_O, NULL},
    {"find_entry", codec_find_entry, METH_VARARGS, NULL},
    {"boundaries", codec_boundaries, METH_VARARGS, NULL},
    {"single_appends", codec_single_appends, METH_VARARGS, NULL},
    {"publish_responses", codec_publish_responses, METH_VARARGS, NULL},
    {"encode", codec_encode, METH_O, NULL},
    {"encode_delimited", codec_encode_delimited, METH_VARARGS, NULL},
    {"decode", codec_decode, METH_VARARGS, NULL},
    {"decode_messages", codec_decode_messages, METH_VARARGS, NULL},
    {"payloads", codec_payloads, METH_VARARGS, NULL},
    {"decode_delimited", codec_decode_delimited, METH_VARARGS, NULL},
    {"decode_columns", codec_decode_columns, METH_VARARGS, NULL},
    {"count_byte", codec_count_byte, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int import_types(struct state *state) {
    PyObject *message = PyImport_ImportModule("broker.protocol.message");
    PyObject *record_batch = PyImport_ImportModule("broker.protocol.record_batch");
    int failed = !message || !record_batch;
    for (int n = 0; n < IMPORTED_TYPE_COUNT && !failed; n++) {
        PyObject *module = n < RECORD_BATCH ? message : record_batch;
        state->types[n] = PyObject_GetAttrString(module, type_names[n]);
        failed = !state->types[n];
    }
    Py_XDECREF(message);
    Py_XDECREF(record_batch);
    return failed ? -1 : 0;
}

static int execute(PyObject *module) {
    struct state *state = state_of(module);
    crc32_choose_engine();
    state->tuple_new = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    if (import_types(state) < 0)
        return -1;
    state->types[MESSAGE] = message_type(module);
    if (!state->types[MESSAGE] ||
        PyModule_AddObjectRef(module, "Message", state->types[MESSAGE]) < 0)
        return -1;
    state->faults = PySequence_Tuple(state->types[FAULT]);
    if (!state->faults || PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "CRC_ENGINE", crc32_engine_name());
}

static int traverse(PyObject *module, visitproc visit, void *arg) {
    for (int n = 0; n < TYPE_COUNT; n++)
        Py_VISIT(state_of(module)->types[n]);
    Py_VISIT(state_of(module)->faults);
    return 0;
}

static int clear(PyObject *module) {
    for (int n = 0; n < TYPE_COUNT; n++)
        Py_CLEAR(state_of(module)->types[n]);
    Py_CLEAR(state_of(module)->faults);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "broker.protocol._codec",
    .m_doc = "The compiled engine of broker.protocol._codec_python.",
    .m_size = sizeof(struct state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__codec(void) {
    return PyModuleDef_Init(&definition);
}
