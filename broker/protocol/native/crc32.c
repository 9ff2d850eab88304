/* CRC-32 and CRC-32C by carry-less multiplication or an instruction of its own where the processor has it, by
 * tables elsewhere.
 *
 * The CRC is the remainder of the message, seen as a polynomial over GF(2), by P = 0x104C11DB7, or
 * 0x11EDC6F41 for CRC-32C.
 * Bits are reflected: the first bit of the message is the lowest of its first byte and stands for
 * the highest power. Constants below are reflected too, and shifted by one, as the product of two
 * reflected 64-bit values comes out shifted by one.
 *
 * Source: V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction", Intel 2009; M. Kounavis, F. Berry, "A Systematic Approach to Building High
 * Performance, Software-based, CRC Generators", 2005 (slicing).
 */

#include "crc32.h"

#include <string.h>

#define REFLECTED_POLYNOMIAL 0xEDB88320u
#define REFLECTED_CASTAGNOLI 0x82F63B78u

/* tables[k][b]: what byte b adds to the CRC when k more bytes follow it. */
typedef uint32_t tables[8][256];

static tables ieee_tables, castagnoli_tables;

/* powers[k][n]: x to the power of 8 * n * 256^k, modulo P. */
static uint32_t powers[sizeof(uint32_t)][256];

/* Returns the product of two polynomials modulo P. */
static uint32_t product(uint32_t one, uint32_t other) {
    uint32_t sum = 0;
    for (; one; one <<= 1) {
        sum ^= one >> 31 ? other : 0;
        other = other >> 1 ^ (other & 1 ? REFLECTED_POLYNOMIAL : 0);
    }
    return sum;
}

uint32_t crc32_joined(uint32_t front, uint32_t back, size_t back_bytes) {
    for (int k = 0; back_bytes; back_bytes >>= 8, k = (k + 1) % (int)sizeof(uint32_t))
        if (back_bytes & 0xFF)
            front = product(powers[k][back_bytes & 0xFF], front);
    return front ^ back;
}

static void fill(tables tables, uint32_t polynomial) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        tables[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[k - 1][byte];
            tables[k][byte] = before >> 8 ^ tables[0][before & 0xFF];
        }
}

static void fill_tables(void) {
    fill(ieee_tables, REFLECTED_POLYNOMIAL);
    fill(castagnoli_tables, REFLECTED_CASTAGNOLI);
    uint32_t step = 1u << (31 - 8); /* x^8 */
    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
        powers[k][0] = 1u << 31;
        for (int n = 1; n < 256; n++)
            powers[k][n] = product(powers[k][n - 1], step);
        step = product(powers[k][255], step);
    }
}

static uint32_t load_little_endian(const uint8_t *data) {
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

static inline uint32_t by_slicing(tables tables, uint32_t crc, const uint8_t *data, size_t size) {
    crc = ~crc;
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = crc ^ load_little_endian(data);
        uint32_t high = load_little_endian(data + 4);
        crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^
              tables[4][low >> 24] ^ tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF] ^
              tables[1][high >> 16 & 0xFF] ^ tables[0][high >> 24];
    }
    for (; size; data++, size--)
        crc = crc >> 8 ^ tables[0][(crc ^ *data) & 0xFF];
    return ~crc;
}

uint32_t crc32_by_slicing(uint32_t crc, const uint8_t *data, size_t size) {
    return by_slicing(ieee_tables, crc, data, size);
}

uint32_t crc32c_by_slicing(uint32_t crc, const uint8_t *data, size_t size) {
    return by_slicing(castagnoli_tables, crc, data, size);
}

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define USES_PCLMUL __attribute__((target("pclmul,sse4.1")))

/* Powers of x modulo P, for moving 128 bits forward by 512 and by 128 bits, and 32 bits by 64; P
 * itself and floor(x^64 / P) for the last step. */
struct folds {
    int64_t by_64_bytes[2]; /* the lower half of the vector first */
    int64_t by_16_bytes[2];
    int64_t by_8_bytes;
    int64_t barrett[2];
};

static const struct folds ieee_folds = {
    {0x154442BD4, 0x1C6E41596}, {0x1751997D0, 0x0CCAA009E}, 0x163CD6124, {0x1DB710641, 0x1F7011641}};
static const struct folds castagnoli_folds = {
    {0x0740EEF02, 0x09E4ADDF8}, {0x0F20C0DFE, 0x14CD00BD6}, 0x0DD45AAB8, {0x105EC76F1, 0x0DEA713F1}};

/* Bytes at [n] shift a vector up by 16 - n places, those at [16 + n] shift it down by n; places
 * that nothing moves to have their highest bit set, which makes the shuffle write zero. */
static const uint8_t shifts[48] = {
    128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
    0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,
    128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
};

USES_PCLMUL static inline __m128i load(const uint8_t *data) {
    return _mm_loadu_si128((const __m128i *)data);
}

USES_PCLMUL static inline __m128i vector(const int64_t *halves) {
    return _mm_set_epi64x(halves[1], halves[0]);
}

/* Moves `sum` forward over the bits that the constant says, and adds what lies there. */
USES_PCLMUL static inline __m128i fold(__m128i sum, __m128i constant, __m128i next) {
    __m128i low = _mm_clmulepi64_si128(sum, constant, 0x00);
    __m128i high = _mm_clmulepi64_si128(sum, constant, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Folds the last 1 to 15 bytes in; the 16 bytes that end with them are all in the buffer. */
USES_PCLMUL static inline __m128i fold_tail(__m128i sum, __m128i fold_16, const uint8_t *end,
                                            size_t tail) {
    __m128i down = load(shifts + 16 + tail);
    __m128i first = _mm_shuffle_epi8(sum, load(shifts + tail));
    __m128i rest = _mm_blendv_epi8(_mm_shuffle_epi8(sum, down), load(end - 16), down);
    return fold(first, fold_16, rest);
}

/* Returns the remainder of 128 bits, to which 32 zero bits are appended. */
USES_PCLMUL static inline uint32_t reduce(__m128i sum, const struct folds *folds) {
    const __m128i low_half = _mm_set_epi32(0, -1, 0, -1);
    const __m128i barrett = vector(folds->barrett);
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8),
                        _mm_clmulepi64_si128(sum, vector(folds->by_16_bytes), 0x10));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                        _mm_clmulepi64_si128(_mm_and_si128(sum, low_half),
                                             _mm_cvtsi64_si128(folds->by_8_bytes), 0x00));
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, low_half), barrett, 0x10);
    __m128i product = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_half), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, product), 1);
}

/* Returns the CRC of at least 16 bytes. */
USES_PCLMUL static inline uint32_t by_pclmul(const struct folds *folds, uint32_t crc,
                                             const uint8_t *data, size_t size) {
    const uint8_t *end = data + size;
    const __m128i fold_16 = vector(folds->by_16_bytes);
    __m128i sum = _mm_xor_si128(load(data), _mm_cvtsi32_si128((int)~crc));
    data += 16;
    if (end - data >= 48) {
        /* Four sums at once hide the time that one multiplication takes. */
        const __m128i fold_64 = vector(folds->by_64_bytes);
        __m128i second = load(data), third = load(data + 16), fourth = load(data + 32);
        for (data += 48; end - data >= 64; data += 64) {
            sum = fold(sum, fold_64, load(data));
            second = fold(second, fold_64, load(data + 16));
            third = fold(third, fold_64, load(data + 32));
            fourth = fold(fourth, fold_64, load(data + 48));
        }
        sum = fold(fold(fold(sum, fold_16, second), fold_16, third), fold_16, fourth);
    }
    for (; end - data >= 16; data += 16)
        sum = fold(sum, fold_16, load(data));
    if (data < end)
        sum = fold_tail(sum, fold_16, end, (size_t)(end - data));
    return ~reduce(sum, folds);
}

USES_PCLMUL static uint32_t crc32_by_pclmul(uint32_t crc, const uint8_t *data, size_t size) {
    return size < 16 ? crc32_by_slicing(crc, data, size) : by_pclmul(&ieee_folds, crc, data, size);
}

USES_PCLMUL static uint32_t crc32c_by_pclmul(uint32_t crc, const uint8_t *data, size_t size) {
    return size < 16 ? crc32c_by_slicing(crc, data, size)
                     : by_pclmul(&castagnoli_folds, crc, data, size);
}

static const char *choose(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1"))
        return NULL;
    crc32_of = crc32_by_pclmul;
    crc32c_of = crc32c_by_pclmul;
    return "pclmulqdq";
}

#elif defined(__AARCH64EL__) && \
    (defined(__ARM_FEATURE_CRC32) || (defined(__linux__) && !defined(__clang__)))

#include <arm_acle.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

/* The processor's own instructions for these CRCs, eight bytes at a time. */
__attribute__((target("+crc"))) static uint32_t crc32_by_instruction(uint32_t crc,
                                                                    const uint8_t *data,
                                                                    size_t size) {
    crc = ~crc;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        crc = __crc32d(crc, word);
    }
    for (; size; data++, size--)
        crc = __crc32b(crc, *data);
    return ~crc;
}

__attribute__((target("+crc"))) static uint32_t crc32c_by_instruction(uint32_t crc,
                                                                     const uint8_t *data,
                                                                     size_t size) {
    crc = ~crc;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        crc = __crc32cd(crc, word);
    }
    for (; size; data++, size--)
        crc = __crc32cb(crc, *data);
    return ~crc;
}

static const char *choose(void) {
#ifdef __linux__
    if (!(getauxval(AT_HWCAP) & HWCAP_CRC32))
        return NULL;
#endif
    crc32_of = crc32_by_instruction;
    crc32c_of = crc32c_by_instruction;
    return "armv8 crc32";
}

#else

static const char *choose(void) {
    return NULL;
}

#endif

uint32_t (*crc32_of)(uint32_t crc, const uint8_t *data, size_t size) = crc32_by_slicing;
uint32_t (*crc32c_of)(uint32_t crc, const uint8_t *data, size_t size) = crc32c_by_slicing;

static const char *engine_name;

void crc32_choose_engine(void) {
    if (engine_name)
        return; /* another interpreter of this process has done it */
    fill_tables();
    engine_name = choose();
    if (!engine_name)
        engine_name = "slicing-by-8";
}

const char *crc32_engine_name(void) {
    return engine_name;
}
