/* The module `broker.protocol._codec`: its functions, and what they take from codec_types.py. */

#include "codec.h"

#include <stdarg.h>

#include "crc32.h"

/* To be raised here and in codec_choice.py whenever a function of this module changes. */
#define INTERFACE 1

/* Below this a walk takes less time than another thread may keep the lock once it has it. */
#define UNLOCKED_MIN_BYTES (64u << 10)

PyThreadState *unlock_for(size_t bytes) {
    return bytes >= UNLOCKED_MIN_BYTES ? PyEval_SaveThread() : NULL;
}

void lock_again(PyThreadState *unlocked) {
    if (unlocked)
        PyEval_RestoreThread(unlocked);
}

PyObject *new_result(PyObject *module, PyObject *type, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *tuple = Py_VaBuildValue(format, values);
    va_end(values);
    if (!tuple)
        return NULL;
    PyObject *args = PyTuple_Pack(1, tuple);
    Py_DECREF(tuple);
    if (!args)
        return NULL;
    PyObject *result = state_of(module)->tuple_new((PyTypeObject *)type, args, NULL);
    Py_DECREF(args);
    return result;
}

PyObject *fault_object(PyObject *module, enum fault fault) {
    return PyTuple_GetItem(state_of(module)->faults, (Py_ssize_t)fault);
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

/* Functions that take their arguments as an array have another type than the table has. */
#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef methods[] = {
    {"crc32", FAST(codec_crc32), NULL},
    {"crc32_by_slicing", FAST(codec_crc32_by_slicing), NULL},
    {"scan", codec_scan, METH_O, NULL},
    {"boundaries", codec_boundaries, METH_O, NULL},
    {"encode", codec_encode, METH_O, NULL},
    {"encode_delimited", codec_encode_delimited, METH_VARARGS, NULL},
    {"decode", codec_decode, METH_VARARGS, NULL},
    {"payloads", codec_payloads, METH_VARARGS, NULL},
    {"decode_delimited", codec_decode_delimited, METH_VARARGS, NULL},
    {"decode_columns", codec_decode_columns, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int import_types(struct codec_state *state) {
    PyObject *types = PyImport_ImportModule("broker.protocol.codec_types");
    if (!types)
        return -1;
    PyObject *fault = PyObject_GetAttrString(types, "Fault");
    state->faults = fault ? PySequence_Tuple(fault) : NULL;
    state->scan = PyObject_GetAttrString(types, "Scan");
    state->encoded_text = PyObject_GetAttrString(types, "EncodedText");
    state->decoded = PyObject_GetAttrString(types, "Decoded");
    state->decoded_text = PyObject_GetAttrString(types, "DecodedText");
    state->columns = PyObject_GetAttrString(types, "Columns");
    state->oversize_piece_error = PyObject_GetAttrString(types, "OversizePieceError");
    state->message_size_error = PyObject_GetAttrString(types, "MessageSizeTooLargeError");
    state->tuple_new = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    Py_XDECREF(fault);
    Py_DECREF(types);
    return PyErr_Occurred() ? -1 : 0;
}

static int execute(PyObject *module) {
    crc32_choose_engine();
    if (import_types(state_of(module)) < 0 ||
        PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "CRC_ENGINE", crc32_engine_name());
}

#define EACH_OBJECT(state, DO)                                                                     \
    do {                                                                                           \
        DO((state)->faults);                                                                       \
        DO((state)->scan);                                                                         \
        DO((state)->encoded_text);                                                                 \
        DO((state)->decoded);                                                                      \
        DO((state)->decoded_text);                                                                 \
        DO((state)->columns);                                                                      \
        DO((state)->oversize_piece_error);                                                         \
        DO((state)->message_size_error);                                                           \
    } while (0)

static int traverse(PyObject *module, visitproc visit, void *arg) {
    EACH_OBJECT(state_of(module), Py_VISIT);
    return 0;
}

static int clear(PyObject *module) {
    EACH_OBJECT(state_of(module), Py_CLEAR);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "broker.protocol._codec",
    .m_doc = "The compiled twin of broker.protocol.codec_python.",
    .m_size = sizeof(struct codec_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__codec(void) {
    return PyModuleDef_Init(&definition);
}
