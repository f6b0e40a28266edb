#include "batch.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>

#include "walls.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace jedax {
namespace {

const char* parse(const Call& call, Settings& s) {
  constexpr int64_t fixed = sizeof(Settings::Numbers) / sizeof(float);
  if (call.num_sizes < 4) return "maze kernel: too few sizes";
  s.steps = call.sizes[0];
  s.activation = call.sizes[1];
  s.layers = call.sizes + 2;
  s.num_layers = int(call.num_sizes - 2);
  s.lasers = s.layers[0] - 2;
  if (s.steps < 1 || s.activation < 0 || s.activation >= kActivations || s.lasers < 1) {
    return "maze kernel: sizes out of range";
  }
  if (s.layers[s.num_layers - 1] != 2) return "maze kernel: a controller has two outputs";
  int64_t params = 0;
  for (int i = 0; i + 1 < s.num_layers; ++i) params += int64_t{s.layers[i] + 1} * s.layers[i + 1];
  if (params != call.params) return "maze kernel: genotypes do not fit the layers";
  s.params = int(params);
  if (call.num_numbers != fixed + 2 * s.lasers) return "maze kernel: another number of settings";
  std::memcpy(&s.n, call.numbers, sizeof s.n);
  s.laser_cos = call.numbers + fixed;
  s.laser_sin = s.laser_cos + s.lasers;
  s.largest = 2 * s.n.wheel_speed * s.n.turn;
  return nullptr;
}

// The robots of a call, shared between threads. A task that starts when all is done finds nothing to take.
struct Shared {
  Shared(const Settings& s, const Call& call, void (*run)(Work*))
      : settings(s), walls(call.walls, call.num_walls, !call.record), work(call.arrays), kernel(run) {
    work.settings = &settings;
    work.walls = &walls.walls();
    work.next = 0;
  }
  Settings settings;
  WallList walls;
  Work work;
  void (*kernel)(Work*);
  std::atomic<int> inside{0};
};

void help(Shared& shared) {
  shared.inside.fetch_add(1);
  const int64_t next = __atomic_load_n(&shared.work.next, __ATOMIC_SEQ_CST);
  if (next < shared.work.count) shared.kernel(&shared.work);
  shared.inside.fetch_sub(1);
}

void wait_for_others(Shared& shared) {
  for (int spins = 0; shared.inside.load() != 0; ++spins) {
    if (spins > 2000) std::this_thread::yield();
#if defined(__SSE2__)
    _mm_pause();
#endif
  }
}

}  // namespace

const char* run(const Kernels& kernels, const Call& call, int64_t threads, const Schedule& schedule) {
  Settings settings;
  if (const char* wrong = parse(call, settings)) return wrong;
  const int64_t robots = call.groups * call.robots, floats = 4 * call.num_walls;
  for (int64_t g = 1; g < call.groups; ++g) {
    if (std::memcmp(call.walls, call.walls + g * floats, floats * sizeof(float)) != 0) {
      return "maze kernel: all replicas must have the same walls";
    }
  }
  if (robots == 0) return nullptr;
  const int64_t workers = std::max<int64_t>(1, std::min(threads, (robots + kernels.width - 1) / kernels.width));
  const auto shared = std::make_shared<Shared>(settings, call, call.record ? kernels.record : kernels.evaluate);
  shared->work.count = robots;
  shared->work.share = (robots + workers - 1) / workers;
  for (int64_t i = 1; i < workers; ++i) schedule([shared] { help(*shared); });
  help(*shared);
  wait_for_others(*shared);
  return nullptr;
}

}  // namespace jedax
