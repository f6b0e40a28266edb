// What episodes in lanes need beside arithmetic: memory, and how the processor treats tiny numbers.
#pragma once

#include <stdint.h>

#include "core/pack.h"

namespace jedax {
namespace {

// While it lives, this thread takes numbers too small for float32's full precision for zero: as XLA does, and faster.
class FlushSmallNumbers {
 public:
#if defined(__SSE2__)
  FlushSmallNumbers() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushSmallNumbers() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushSmallNumbers() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" : : "r"(before_ | (1ull << 24)));
  }
  ~FlushSmallNumbers() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

 private:
  uint64_t before_;
#else
  FlushSmallNumbers() {}
#endif
};

// Zeroed memory for arrays that each begin where a vector may be loaded; not `ok` if there was none.
class Buffer {
 public:
  explicit Buffer(int64_t floats) : data_(static_cast<float*>(__builtin_malloc(floats * sizeof(float) + 64))) {
    if (!data_) return;
    aligned_ = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(data_) + 63) & ~uintptr_t{63});
    __builtin_memset(aligned_, 0, floats * sizeof(float));
  }
  ~Buffer() { __builtin_free(data_); }
  Buffer(const Buffer&) = delete;
  bool ok() const { return data_ != nullptr; }
  float* take(int64_t floats) {
    float* here = aligned_;
    aligned_ += floats;
    return here;
  }

 private:
  float* data_;
  float* aligned_ = nullptr;
};

template <int K>
JEDAX_INLINE Pack<K>* packs(float* p) {
  return reinterpret_cast<Pack<K>*>(p);
}

inline bool is_finite(const float* row, int params) {
  unsigned bad = 0;
  for (int p = 0; p < params; ++p) {
    unsigned value;
    __builtin_memcpy(&value, row + p, sizeof value);
    bad |= (value & 0x7f800000u) == 0x7f800000u;
  }
  return bad == 0;
}

}  // namespace
}  // namespace jedax
