#include "random/threefry.h"

namespace jedax {

template <>
void fill<JEDAX_ISA>(uint32_t k0, uint32_t k1, uint64_t begin, int64_t count, uint32_t* bits) {
  const uint32_t high = uint32_t(begin >> 32), low = uint32_t(begin), last = uint32_t(count);
  for (uint32_t i = 0; i < last; ++i) {
    uint32_t x = high, y = low + i;
    threefry(k0, k1, x, y);
    bits[i] = x ^ y;
  }
}

}  // namespace jedax
