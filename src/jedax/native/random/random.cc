// The random bits of jax.random's default generator, counter by counter as with `jax_threefry_partitionable`.

#include <algorithm>

#include "core/ffi.h"
#include "random/threefry.h"

namespace jedax {
namespace {

// A block begins at a multiple of its size, so that all its counters have the same upper half.
constexpr int64_t kBlock = int64_t(1) << 30;

ffi::Error bits(Words keys, ffi::Result<Words> out) {
  const int64_t groups = int64_t(keys.element_count()) / 2;
  const int64_t count = groups == 0 ? 0 : int64_t(out->element_count()) / groups;
  for (int64_t g = 0; g < groups; ++g) {
    const uint32_t* key = keys.typed_data() + 2 * g;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      uint32_t* to = out->typed_data() + g * count + begin;
      JEDAX_CHOSEN(fill)(key[0], key[1], uint64_t(begin), std::min(kBlock, count - begin), to);
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

JEDAX_HANDLER(jedax_random_bits, jedax::bits, ffi::Ffi::Bind().Arg<jedax::Words>().Ret<jedax::Words>())
JEDAX_HANDLER(jedax_random_split, jedax::split, ffi::Ffi::Bind().Arg<jedax::Words>().Ret<jedax::Words>())
JEDAX_HANDLER(jedax_random_fold_in, jedax::fold_in,
              ffi::Ffi::Bind().Arg<jedax::Words>().Arg<jedax::Words>().Ret<jedax::Words>())
