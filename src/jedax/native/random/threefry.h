// Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
#pragma once

#include <stdint.h>

#include "core/isa.h"

namespace jedax {

// Computes `count` words of random bits, those with the counters from `begin` on, whose upper halves are equal.
template <Isa>
void fill(uint32_t k0, uint32_t k1, uint64_t begin, int64_t count, uint32_t* bits);
#if defined(JEDAX_ISA)
template <>
void fill<JEDAX_ISA>(uint32_t k0, uint32_t k1, uint64_t begin, int64_t count, uint32_t* bits);
#endif

namespace {

template <int a, int b, int c, int d>
inline void four_rounds(uint32_t& x, uint32_t& y) {
  x += y, y = (y << a | y >> (32 - a)) ^ x;
  x += y, y = (y << b | y >> (32 - b)) ^ x;
  x += y, y = (y << c | y >> (32 - c)) ^ x;
  x += y, y = (y << d | y >> (32 - d)) ^ x;
}

inline void threefry(uint32_t k0, uint32_t k1, uint32_t& x, uint32_t& y) {
  const uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDAu;
  x += k0, y += k1;
  four_rounds<13, 15, 26, 6>(x, y);
  x += k1, y += k2 + 1;
  four_rounds<17, 29, 16, 24>(x, y);
  x += k2, y += k0 + 2;
  four_rounds<13, 15, 26, 6>(x, y);
  x += k0, y += k1 + 3;
  four_rounds<17, 29, 16, 24>(x, y);
  x += k1, y += k2 + 4;
  four_rounds<13, 15, 26, 6>(x, y);
  x += k2, y += k0 + 5;
}

}  // namespace
}  // namespace jedax
