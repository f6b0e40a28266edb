// Runs one call on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "core/ffi.h"
#include "core/queue.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace jedax {

// Calls `work` on this thread and on others of a pool (as `ffi::ThreadPool`), at most one thread for every `width` items,
// and returns when all items are done. `work` takes items from the queue until none is left; it takes none where it has no
// memory, which is an error on this thread.
template <class Pool>
ffi::Error run_on_threads(Pool& pool, int64_t count, int64_t width, std::function<void(Queue&)> work) {
  // A thread that starts too late finds no item and calls nothing: `work` may refer to variables of the caller.
  struct Shared {
    Queue queue;
    std::function<void(Queue&)> work;
    std::atomic<int> inside{0};
    void help() {
      inside.fetch_add(1);
      if (!none_left(queue)) work(queue);
      inside.fetch_sub(1);
    }
  };
  const int64_t threads = std::max<int64_t>(1, std::min(pool.num_threads(), (count + width - 1) / width));
  const auto shared = std::make_shared<Shared>();
  shared->queue = {count, (count + threads - 1) / threads, 0};
  shared->work = std::move(work);
  for (int64_t i = 1; i < threads; ++i) pool.Schedule([shared] { shared->help(); });
  shared->help();
  int64_t first;
  const bool done = take(shared->queue, count, first) == 0;  // where items are left, the others stop
  for (int spins = 0; shared->inside.load() != 0; ++spins) {
    if (spins > 2000) std::this_thread::yield();
#if defined(__SSE2__)
    _mm_pause();
#endif
  }
  return done ? ffi::Error::Success() : ffi::Error(ffi::ErrorCode::kResourceExhausted, "no memory for native code");
}

}  // namespace jedax
