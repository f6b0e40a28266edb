// The same without XLA, with threads of its own: for tests, and to measure what XLA's call costs.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "batch.h"
#include "dispatch.h"

#define JEDAX_EXPORT extern "C" __attribute__((visibility("default")))

namespace jedax {
namespace {

// Threads that live as long as the process.
class Threads {
 public:
  void schedule(std::function<void()> task, size_t at_least) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
      for (; count_ < at_least; ++count_) std::thread([this] { work(); }).detach();
    }
    ready_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      ready_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  size_t count_ = 0;
};

}  // namespace
}  // namespace jedax

JEDAX_EXPORT const char* jedax_maze_instruction_sets() { return jedax::instruction_sets(); }

// Evaluates `robots` genotypes with the kernels of the named instruction set (null: the best one), on `threads`
// threads. Arrays as in jedax::Call. Returns null, or what is wrong.
JEDAX_EXPORT const char* jedax_maze_plain(const char* name, int64_t threads, const float* numbers, int64_t num_numbers,
                                          const int32_t* sizes, int64_t num_sizes, const float* walls,
                                          int64_t num_walls, const float* genotypes, int64_t robots, int64_t params,
                                          float* fitness, float* descriptor) {
  static jedax::Threads* const pool = new jedax::Threads;  // never deleted: its threads may outlive everything
  const jedax::Kernels* chosen = jedax::kernels(name);
  if (chosen == nullptr) return "no kernels of this name for this processor";
  jedax::Call call{};
  call.numbers = numbers;
  call.num_numbers = num_numbers;
  call.sizes = sizes;
  call.num_sizes = num_sizes;
  call.walls = walls;
  call.groups = 1;
  call.robots = robots;
  call.params = params;
  call.num_walls = num_walls;
  call.arrays.genotypes = genotypes;
  call.arrays.fitness = fitness;
  call.arrays.descriptor = descriptor;
  return jedax::run(*chosen, call, threads,
                    [threads](std::function<void()> task) { pool->schedule(std::move(task), size_t(threads - 1)); });
}
