// The random bits of jax.random's default generator, Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random
// numbers: as easy as 1, 2, 3"), counter by counter as JAX does with `jax_threefry_partitionable`.

#include <algorithm>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

// The loop is compiled for several instruction sets; the linker takes the best one.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define JEDAX_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define JEDAX_CLONES
#endif

namespace ffi = xla::ffi;

namespace jedax {
namespace {

using Words = ffi::Buffer<ffi::U32>;

template <int a, int b, int c, int d>
inline __attribute__((always_inline)) void four_rounds(uint32_t& x, uint32_t& y) {
  x += y, y = (y << a | y >> (32 - a)) ^ x;
  x += y, y = (y << b | y >> (32 - b)) ^ x;
  x += y, y = (y << c | y >> (32 - c)) ^ x;
  x += y, y = (y << d | y >> (32 - d)) ^ x;
}

inline __attribute__((always_inline)) void threefry(uint32_t k0, uint32_t k1, uint32_t& x, uint32_t& y) {
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

// A block begins at a multiple of its size, so that all its counters have the same upper half.
constexpr int64_t kBlock = int64_t(1) << 30;

JEDAX_CLONES void fill(uint32_t k0, uint32_t k1, uint64_t begin, int64_t count, uint32_t* bits) {
  const uint32_t high = uint32_t(begin >> 32), low = uint32_t(begin), last = uint32_t(count);
  for (uint32_t i = 0; i < last; ++i) {
    uint32_t x = high, y = low + i;
    threefry(k0, k1, x, y);
    bits[i] = x ^ y;
  }
}

ffi::Error bits(Words keys, ffi::Result<Words> out) {
  const int64_t groups = int64_t(keys.element_count()) / 2;
  const int64_t count = groups == 0 ? 0 : int64_t(out->element_count()) / groups;
  for (int64_t g = 0; g < groups; ++g) {
    const uint32_t* key = keys.typed_data() + 2 * g;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      fill(key[0], key[1], uint64_t(begin), std::min(kBlock, count - begin), out->typed_data() + g * count + begin);
    }
  }
  return ffi::Error::Success();
}

ffi::Error split(Words keys, ffi::Result<Words> out) {
  const int64_t groups = int64_t(keys.element_count()) / 2;
  const int64_t count = groups == 0 ? 0 : int64_t(out->element_count()) / 2 / groups;
  uint32_t* to = out->typed_data();
  for (int64_t g = 0; g < groups; ++g) {
    const uint32_t* key = keys.typed_data() + 2 * g;
    for (int64_t i = 0; i < count; ++i, to += 2) {
      to[0] = uint32_t(i >> 32), to[1] = uint32_t(i);
      threefry(key[0], key[1], to[0], to[1]);
    }
  }
  return ffi::Error::Success();
}

ffi::Error fold_in(Words keys, Words data, ffi::Result<Words> out) {
  const int64_t groups = int64_t(keys.element_count()) / 2;
  uint32_t* to = out->typed_data();
  for (int64_t g = 0; g < groups; ++g, to += 2) {
    const uint32_t* key = keys.typed_data() + 2 * g;
    to[0] = 0, to[1] = data.typed_data()[g];
    threefry(key[0], key[1], to[0], to[1]);
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace jedax

#pragma GCC visibility push(default)

XLA_FFI_DEFINE_HANDLER_SYMBOL(jedax_random_bits, jedax::bits,
                              ffi::Ffi::Bind().Arg<jedax::Words>().Ret<jedax::Words>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(jedax_random_split, jedax::split,
                              ffi::Ffi::Bind().Arg<jedax::Words>().Ret<jedax::Words>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(jedax_random_fold_in, jedax::fold_in,
                              ffi::Ffi::Bind().Arg<jedax::Words>().Arg<jedax::Words>().Ret<jedax::Words>());

#pragma GCC visibility pop
