// How many policies a thread simulates at once.
#pragma once

#include <stdint.h>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include <algorithm>

#include "control/control.h"

namespace jedax {
namespace control {

// Bytes of a core's second cache; 0: unknown.
inline int64_t second_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const int64_t bytes = std::max<int64_t>(0, sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes;
#else
  return 0;
#endif
}

// How many policies a thread simulates at once, so that their weights stay in a cache: in the second one, where that
// leaves a third of the lanes and at least four of them robots, or else in the thread's share of the last one. Weights
// beyond that come from memory in every step.
inline int fitting(const Episode& episode, int lanes) {
  constexpr int64_t kLastCache = 9 << 20, kFewest = 2, kFewestInSecond = 4;
  const int64_t bytes = int64_t(episode.params) * (episode.half_weights ? 2 : 4);
  const int64_t second = second_cache() / 8 * 7 / bytes, last = std::max(kFewest, kLastCache / bytes);
  return int(std::min<int64_t>(lanes, second >= kFewestInSecond && 3 * second >= lanes ? second : last));
}

}  // namespace control
}  // namespace jedax
