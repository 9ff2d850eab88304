/* The type of the messages that `decode_messages` returns. */
#ifndef PYLOGCTL_MESSAGE_H
#define PYLOGCTL_MESSAGE_H

#include "codec.h"

#define MESSAGE_FIELD_COUNT 8

/* What all messages of a buffer share. */
struct origin {
    PyObject *topic;
    PyObject *partition;
    PyObject *make; /* called for those that may have an envelope; see envelope.py */
};

/* Returns the type, new. */
PyObject *message_type(PyObject *module);

/* Returns a new message; takes references of its own. */
PyObject *message_made(PyObject *type, const struct origin *origin, PyObject *offset,
                       PyObject *next, PyObject *value, Py_ssize_t inner);

#endif
