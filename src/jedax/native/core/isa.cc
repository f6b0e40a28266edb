#include "core/isa.h"

#include <atomic>
#include <cstring>

namespace jedax {
namespace {

constexpr const char* kNames[] = {"baseline", "avx2", "avx512"};  // of `Isa`
constexpr const char* kBestFirst[] = {"baseline", "avx2,baseline", "avx512,avx2,baseline"};

Isa best() {
#if defined(JEDAX_X86)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return kBaseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return avx512 ? kAvx512 : kAvx2;
#else
  return kBaseline;
#endif
}

std::atomic<Isa> in_use{best()};

}  // namespace

Isa isa() { return in_use.load(std::memory_order_relaxed); }

bool fuses() {
#if defined(JEDAX_X86)
  static const bool found = best() != kBaseline;
  return found;
#else
  return true;
#endif
}

}  // namespace jedax

#define JEDAX_EXPORT extern "C" __attribute__((visibility("default")))

// The digest of the sources, see CMakeLists.txt.
JEDAX_EXPORT const char* jedax_sources() { return JEDAX_SOURCES; }

// The names of the instruction sets that this processor can run, the best first, separated by commas.
JEDAX_EXPORT const char* jedax_instruction_sets() { return jedax::kBestFirst[jedax::best()]; }

// Makes all kernels use the instruction set of this name, one of `jedax_instruction_sets`.
JEDAX_EXPORT void jedax_use_instruction_set(const char* name) {
  for (int isa = 0; isa <= jedax::best(); ++isa) {
    if (std::strcmp(jedax::kNames[isa], name) == 0) jedax::in_use = jedax::Isa(isa);
  }
}
