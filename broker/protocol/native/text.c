/* Bytes of one value in a text, counted as many at a time as the processor's registers hold. */

#include "codec.h"

/* Counted side by side; a multiple of what any register holds, for the compiler to vectorise. */
#define LANES 64

/* Of one lane, before its byte could overflow. */
#define MAX_ROWS 255

static size_t count_rows(const uint8_t *data, size_t rows, uint8_t wanted) {
    uint8_t lanes[LANES] = {0};
    for (size_t row = 0; row < rows; row++, data += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            lanes[lane] = (uint8_t)(lanes[lane] + (data[lane] == wanted));
    size_t count = 0;
    for (size_t lane = 0; lane < LANES; lane++)
        count += lanes[lane];
    return count;
}

static size_t count_byte(const uint8_t *data, size_t size, uint8_t wanted) {
    size_t count = 0;
    while (size >= LANES) {
        size_t rows = size / LANES < MAX_ROWS ? size / LANES : MAX_ROWS;
        count += count_rows(data, rows, wanted);
        data += rows * LANES;
        size -= rows * LANES;
    }
    for (; size; size--)
        count += *data++ == wanted;
    return count;
}

PyObject *codec_count_byte(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer text;
    unsigned char wanted;
    if (!PyArg_ParseTuple(args, "y*b", &text, &wanted))
        return NULL;
    PyThreadState *unlocked = unlock_for((size_t)text.len);
    size_t count = count_byte(text.buf, (size_t)text.len, wanted);
    lock_again(unlocked);
    PyBuffer_Release(&text);
    return PyLong_FromSize_t(count);
}
