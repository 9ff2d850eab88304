/* Looking at a message set without making anything of it. */

#include <stdlib.h>

#include "codec.h"

static PyObject *list_of(const struct positions *positions) {
    PyObject *list = PyList_New((Py_ssize_t)positions->count);
    for (size_t n = 0; list && n < positions->count; n++) {
        PyObject *number = PyLong_FromSize_t(positions->items[n]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)n, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *codec_scan(PyObject *module, PyObject *buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    struct walk walk = {.data = view.buf, .size = (size_t)view.len};
    struct positions wrappers = {0};
    PyThreadState *unlocked = unlock_for(walk.size);
    bool has_memory = walk_wrappers(&walk, &wrappers);
    lock_again(unlocked);
    PyBuffer_Release(&view);
    PyObject *result = NULL;
    if (has_memory)
        result = new_result(module, SCAN, "nnONn", (Py_ssize_t)walk.position,
                            (Py_ssize_t)walk.count, fault_object(module, walk.fault),
                            list_of(&wrappers), (Py_ssize_t)walk.largest);
    else
        PyErr_NoMemory();
    free(wrappers.items);
    return result;
}

PyObject *codec_boundaries(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *buffer;
    Py_ssize_t least_bytes = MAGIC0_HEADER_BYTES, most_bytes = INT32_MAX, most_count = PY_SSIZE_T_MAX;
    if (!PyArg_ParseTuple(args, "O|nnn", &buffer, &least_bytes, &most_bytes, &most_count))
        return NULL;
    if (least_bytes < 0 || least_bytes > INT32_MAX || most_bytes < 0 || most_count < 0) {
        PyErr_SetString(PyExc_ValueError, "a limit is out of range");
        return NULL;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    struct bounds bounds = {(int32_t)least_bytes,
                            (int32_t)(most_bytes < INT32_MAX ? most_bytes : INT32_MAX),
                            (size_t)most_count};
    struct positions found = {0};
    /* a limited walk is short, and not worth the wait for the lock behind it */
    PyThreadState *unlocked = unlock_for(most_count < PY_SSIZE_T_MAX ? 0 : (size_t)view.len);
    bool has_memory = walk_boundaries(view.buf, (size_t)view.len, &bounds, &found);
    lock_again(unlocked);
    PyBuffer_Release(&view);
    PyObject *list = has_memory ? list_of(&found) : PyErr_NoMemory();
    free(found.items);
    return list;
}
