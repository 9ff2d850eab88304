/* The type `Message`: what `decode_messages` makes of each message; documented in _codec_python.
 *
 * Its fields are read-only and cannot form cycles, so that the collector need not know of it. Its
 * methods are written in Python and set on the type there.
 */

#include "message.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

struct message {
    PyObject_HEAD
    PyObject *fields[MESSAGE_FIELD_COUNT];
};

#define FIELD(name, place)                                                                         \
    {name, T_OBJECT_EX, (Py_ssize_t)(offsetof(struct message, fields) + (place) * sizeof(PyObject *)), \
     READONLY, NULL}

static PyMemberDef members[] = {
    FIELD("topic", 0),  FIELD("partition", 1), FIELD("offset", 2), FIELD("next_offset", 3),
    FIELD("value", 4),  FIELD("inner", 5),     FIELD("envelope", 6), FIELD("record", 7),
    {NULL, 0, 0, 0, NULL},
};

/* The first bytes of an envelope; the rest is examined in Python. */
static const char MAGIC[] = {'\xf8', 'P', 'L', 'E'};

static PyObject *message_create(PyTypeObject *type, PyObject *const *fields) {
    struct message *message = (struct message *)PyType_GenericAlloc(type, 0);
    for (int n = 0; message && n < MESSAGE_FIELD_COUNT; n++)
        message->fields[n] = Py_NewRef(fields[n]);
    return (PyObject *)message;
}

static PyObject *message_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"topic", "partition", "offset",   "next_offset",
                            "value", "inner",     "envelope", "record", NULL};
    PyObject *fields[MESSAGE_FIELD_COUNT] = {0}, *zero = PyLong_FromLong(0), *message = NULL;
    fields[5] = zero;
    fields[6] = fields[7] = Py_None;
    if (zero && PyArg_ParseTupleAndKeywords(args, keywords, "UOO!O!S|O!OO", names, &fields[0],
                                            &fields[1], &PyLong_Type, &fields[2], &PyLong_Type,
                                            &fields[3], &fields[4], &PyLong_Type, &fields[5],
                                            &fields[6], &fields[7]))
        message = message_create(type, fields);
    Py_XDECREF(zero);
    return message;
}

static void message_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    for (int n = 0; n < MESSAGE_FIELD_COUNT; n++)
        Py_XDECREF(((struct message *)self)->fields[n]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *message_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject **fields = ((struct message *)self)->fields;
    return Py_BuildValue("O(OOOOOOOO)", Py_TYPE(self), fields[0], fields[1], fields[2], fields[3],
                         fields[4], fields[5], fields[6], fields[7]);
}

static PyMethodDef methods[] = {
    {"__reduce__", message_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, message_new},         {Py_tp_dealloc, message_dealloc},
    {Py_tp_members, members},         {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "pylogctl.Message",
    .basicsize = sizeof(struct message),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

PyObject *message_type(PyObject *module) {
    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *message_made(PyObject *type, const struct origin *origin, PyObject *offset,
                       PyObject *next, PyObject *value, Py_ssize_t inner) {
    if (PyBytes_Size(value) >= (Py_ssize_t)sizeof MAGIC &&
        memcmp(PyBytes_AsString(value), MAGIC, sizeof MAGIC) == 0)
        return PyObject_CallFunction(origin->make, "OOOOOn", origin->topic, origin->partition,
                                     offset, next, value, inner);
    PyObject *place = PyLong_FromSsize_t(inner);
    if (!place)
        return NULL;
    PyObject *fields[] = {origin->topic, origin->partition, offset,  next,
                          value,         place,             Py_None, Py_None};
    PyObject *message = message_create((PyTypeObject *)type, fields);
    Py_DECREF(place);
    return message;
}
