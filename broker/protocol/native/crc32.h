/* CRC-32 as zlib computes it, and CRC-32C, by the fastest way that this processor has. */
#ifndef PYLOGCTL_CRC32_H
#define PYLOGCTL_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Chooses the engine and fills the tables; to be called before all else. */
void crc32_choose_engine(void);

/* The name of the engine that `crc32_of` and `crc32c_of` run. */
const char *crc32_engine_name(void);

/* Returns the CRC of data that follows other data whose CRC is `crc`; 0 to begin with. */
extern uint32_t (*crc32_of)(uint32_t crc, const uint8_t *data, size_t size);

/* The same for CRC-32C. */
extern uint32_t (*crc32c_of)(uint32_t crc, const uint8_t *data, size_t size);

/* Returns the CRC of data that consists of a front and a back with these CRCs. */
uint32_t crc32_joined(uint32_t front, uint32_t back, size_t back_bytes);

/* The engines that run on every processor, eight tables for eight bytes at a time. */
uint32_t crc32_by_slicing(uint32_t crc, const uint8_t *data, size_t size);
uint32_t crc32c_by_slicing(uint32_t crc, const uint8_t *data, size_t size);

#endif
