#include "dispatch.h"

#include <cstring>
#include <string>
#include <vector>

namespace jedax {

extern const Kernels kernels_baseline;
#if defined(JEDAX_X86)
extern const Kernels kernels_avx2, kernels_avx512;
#endif

namespace {

std::vector<const Kernels*> runnable() {
  std::vector<const Kernels*> found;
#if defined(JEDAX_X86)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    found.push_back(&kernels_avx512);
  }
  if (avx2) found.push_back(&kernels_avx2);
#endif
  found.push_back(&kernels_baseline);
  return found;
}

}  // namespace

const Kernels* kernels(const char* name) {
  static const std::vector<const Kernels*> all = runnable();
  if (name == nullptr || *name == '\0') return all.front();
  for (const Kernels* one : all) {
    if (std::strcmp(one->name, name) == 0) return one;
  }
  return nullptr;
}

const char* instruction_sets() {
  static const std::string names = [] {
    std::string all;
    for (const Kernels* one : runnable()) all += (all.empty() ? "" : ",") + std::string(one->name);
    return all;
  }();
  return names.c_str();
}

}  // namespace jedax
