// Items that several threads work on: each thread takes some of them until none is left.
#pragma once

#include <stdint.h>

namespace jedax {

struct Queue {
  int64_t count;
  int64_t share;  // items for each thread
  int64_t next;   // the first item that no thread has taken; atomic
};

namespace {

// Takes up to `wanted` items. Returns how many it took; `first` becomes the first of them.
inline int64_t take(Queue& queue, int64_t wanted, int64_t& first) {
  first = __atomic_fetch_add(&queue.next, wanted, __ATOMIC_SEQ_CST);
  const int64_t left = queue.count - first;
  return left < 0 ? 0 : left < wanted ? left : wanted;
}

inline bool none_left(const Queue& queue) { return __atomic_load_n(&queue.next, __ATOMIC_SEQ_CST) >= queue.count; }

}  // namespace
}  // namespace jedax
