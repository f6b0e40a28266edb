// Episodes of many robots at once, one robot to a lane. Compiled once for each instruction set, as JEDAX_KERNELS.
//
// No robot's result depends on its lane, on its neighbours or on the number of threads: lanes never mix, and the
// compiler may not contract or reorder floating point operations.

#include "robot.h"

namespace jedax {
namespace {

// Numbers too small for float32's full precision count as zero meanwhile, in whatever thread: as in XLA's, and fast.
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

class Buffer {
 public:
  explicit Buffer(int64_t floats) : data_(static_cast<float*>(__builtin_malloc(floats * sizeof(float) + 64))) {
    aligned_ = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(data_) + 63) & ~uintptr_t{63});
    __builtin_memset(aligned_, 0, floats * sizeof(float));
  }
  ~Buffer() { __builtin_free(data_); }
  Buffer(const Buffer&) = delete;
  float* take(int64_t floats) {
    float* here = aligned_;
    aligned_ += floats;
    return here;
  }

 private:
  float* data_;
  float* aligned_;
};

int64_t take(Work& work, int64_t wanted, int64_t& first) {
  first = __atomic_fetch_add(&work.next, wanted, __ATOMIC_SEQ_CST);
  const int64_t left = work.count - first;
  return left < 0 ? 0 : left < wanted ? left : wanted;
}

bool is_finite(const float* row, int params) {
  unsigned bad = 0;
  for (int p = 0; p < params; ++p) {
    unsigned value;
    __builtin_memcpy(&value, row + p, sizeof value);
    bad |= (value & 0x7f800000u) == 0x7f800000u;
  }
  return bad == 0;
}

// Robots under way, one in each active lane.
template <int K>
struct Group {
  static constexpr int kLanes = K * kWidth;
  float *weights, *lasers, *laser_noise, *wheel_noise, *values;
  alignas(64) float x[kLanes], y[kLanes], cos[kLanes], sin[kLanes], last_x[kLanes], last_y[kLanes];
  int64_t robot[kLanes], began[kLanes];
  uint64_t active = 0;
  int64_t now = 0;

  static int widest(const Settings& s) {
    int most = s.lasers + 2;
    for (int i = 0; i < s.num_layers; ++i) most = s.layers[i] > most ? s.layers[i] : most;
    return most;
  }
  static int64_t floats(const Settings& s) {
    return int64_t{kLanes} * (s.params + 2 * s.lasers + 2 + 2 * widest(s));
  }
  Group(const Settings& s, Buffer& buffer)
      : weights(buffer.take(int64_t{kLanes} * s.params)),
        lasers(buffer.take(kLanes * s.lasers)),
        laser_noise(buffer.take(kLanes * s.lasers)),
        wheel_noise(buffer.take(kLanes * 2)),
        values(buffer.take(2 * kLanes * widest(s))) {
    for (int lane = 0; lane < kLanes; ++lane) place(s, lane);
  }

  void place(const Settings& s, int lane) {
    x[lane] = last_x[lane] = s.n.x;
    y[lane] = last_y[lane] = s.n.y;
    cos[lane] = s.n.cos;
    sin[lane] = s.n.sin;
  }

  // Lays a genotype into a lane. Bumpers come before lasers; where they are not felt, they read -1 all the time.
  void program(const Settings& s, int lane, const float* row, bool felt) {
    float* to = weights + lane;
    for (int number = 0; number + 1 < s.num_layers; ++number) {
      const int inputs = s.layers[number], outputs = s.layers[number + 1];
      const bool senses = number == 0;
      const int lasers_or_all = senses ? inputs - 2 : inputs;
      const float* bias = row + inputs * outputs;
      for (int j = 0; j < outputs; ++j) {
        const float* right = row + lasers_or_all * outputs + j;
        const float* left = right + outputs;
        *to = !senses || felt ? bias[j] : (bias[j] - *right) - *left;
        to += kLanes;
        if (senses && felt) {
          to[0] = *right;
          to[kLanes] = *left;
          to += 2 * kLanes;
        }
        for (int i = 0; i < lasers_or_all; ++i, to += kLanes) *to = row[i * outputs + j];
      }
      row = bias + outputs;
    }
  }

  void hear_noise(const Work& work, int lane, const Settings& s) {
    const int64_t step = now - began[lane], id = robot[lane];
    for (int i = 0; work.laser_noise && i < s.lasers; ++i) {
      laser_noise[i * kLanes + lane] = work.laser_noise[(id * (s.steps + 1) + step) * s.lasers + i];
    }
    for (int i = 0; work.wheel_noise && i < 2 && step < s.steps; ++i) {
      wheel_noise[i * kLanes + lane] = work.wheel_noise[(id * s.steps + step) * 2 + i];
    }
  }
};

template <int K>
JEDAX_INLINE Pack<K>* packs(float* p) {
  return reinterpret_cast<Pack<K>*>(p);
}

// What the lasers read at the start, for every lane.
template <int K>
__attribute__((noinline)) void look_from_start(const Work& work, Group<K>& g) {
  const Settings& s = *work.settings;
  const Posture<K> start{Pack<K>(s.n.x), Pack<K>(s.n.y), Pack<K>(s.n.cos), Pack<K>(s.n.sin)};
  for (int i = 0; i < s.lasers; ++i) {
    store(g.lasers + i * g.kLanes, beam(*work.walls, start, s.laser_cos[i], s.laser_sin[i]));
  }
}

// One decision. `in`: lasers, with the bumpers before them where they are felt.
template <int K, int kInputs, int kHidden>
JEDAX_INLINE void decide(const Settings& s, const Group<K>& g, const Pack<K>* in, int inputs, Pack<K>* action) {
  Pack<K> sums[2];
  if constexpr (kHidden > 0) {
    Pack<K> hidden[kHidden];
    layer<K>(g.weights, kInputs, kHidden, in, hidden);
    for (int j = 0; j < kHidden; ++j) hidden[j] = activate(s.activation, hidden[j]);
    layer<K>(g.weights + (kInputs + 1) * kHidden * g.kLanes, kHidden, 2, hidden, sums);
  } else {
    const float* weights = g.weights;
    Pack<K>* values = packs<K>(g.values);
    Pack<K>* spare = values + g.widest(s);
    for (int number = 1; number + 1 < s.num_layers; ++number) {
      const int outputs = s.layers[number];
      layer<K>(weights, inputs, outputs, in, values);
      for (int j = 0; j < outputs; ++j) values[j] = activate(s.activation, values[j]);
      weights += (inputs + 1) * outputs * g.kLanes;
      inputs = outputs;
      in = values;
      Pack<K>* swap = values;
      values = spare;
      spare = swap;
    }
    layer<K>(weights, inputs, 2, in, sums);
  }
  action[0] = tanh(sums[0]);
  action[1] = tanh(sums[1]);
}

// Writes the outcome of the robot in a lane whose episode has ended.
template <int K>
void finish(Work& work, const Group<K>& g, int lane, bool arrived) {
  const Settings& s = *work.settings;
  const int64_t robot = g.robot[lane], step = g.now - g.began[lane];
  const float dx = s.n.target_x - g.x[lane], dy = s.n.target_y - g.y[lane];
  const float missed = -float(s.steps) - s.n.distance_weight * __builtin_sqrtf(dx * dx + dy * dy);
  // The position before the last step; where steps were left out, the robot stood still in them.
  const bool stood = step < s.steps && !arrived;
  work.fitness[robot] = arrived ? -float(step) : missed;
  work.descriptor[2 * robot] = stood ? g.x[lane] : g.last_x[lane];
  work.descriptor[2 * robot + 1] = stood ? g.y[lane] : g.last_y[lane];
}

// Puts the next robot into a lane; controllers with weights that are not finite fail at once.
template <int K>
bool refill(Work& work, Group<K>& g, int lane, int64_t robot, const float* start_lasers) {
  const Settings& s = *work.settings;
  const float* row = work.genotypes + robot * s.params;
  if (!is_finite(row, s.params)) {
    work.fitness[robot] = work.descriptor[2 * robot] = work.descriptor[2 * robot + 1] = __builtin_nanf("");
    return false;
  }
  g.program(s, lane, row, false);
  g.place(s, lane);
  g.robot[lane] = robot;
  g.began[lane] = g.now;
  g.active |= uint64_t{1} << lane;
  float noise = 0;
  for (int i = 0; i < s.lasers; ++i) {
    float length = start_lasers[i];
    if (work.laser_noise) {
      noise = work.laser_noise[robot * (s.steps + 1) * s.lasers + i];
      length = length > s.n.laser_range ? __builtin_inff() : length;
      const Vector heard = fma(splat(s.n.laser_noise), splat(noise), splat(length));
      length = heard[0] > 0 ? heard[0] : 0;
    }
    g.lasers[i * g.kLanes + lane] = length > s.n.laser_range ? s.n.beyond : length;
  }
  return true;
}

template <int K>
void fill(Work& work, Group<K>& g, int lane, const float* start_lasers) {
  int64_t robot;
  while (take(work, 1, robot)) {
    if (refill(work, g, lane, robot, start_lasers)) return;
  }
}

// When the next episode runs out of time.
template <int K>
int64_t next_deadline(const Settings& s, const Group<K>& g) {
  int64_t deadline = INT64_MAX;
  for (int lane = 0; lane < g.kLanes; ++lane) {
    if (g.active >> lane & 1 && g.began[lane] + s.steps < deadline) deadline = g.began[lane] + s.steps;
  }
  return deadline;
}

// Ends the episodes of the lanes in `ended` and those whose time is up, and begins others.
template <int K>
__attribute__((noinline)) void change_robots(Work& work, Group<K>& g, uint64_t ended, uint64_t arrived,
                                             const float* start_lasers) {
  for (int lane = 0; lane < g.kLanes; ++lane) {
    const uint64_t bit = uint64_t{1} << lane;
    if (!(g.active & bit)) continue;
    if (!(ended & bit) && g.now - g.began[lane] < work.settings->steps) continue;
    finish(work, g, lane, arrived & bit);
    g.active &= ~bit;
    fill(work, g, lane, start_lasers);
  }
}

// Runs a group until none of its lanes is active; with more than one register, until one is enough.
template <int K, int kLasers, int kHidden>
void run(Work& work, Group<K>& g, const float* start_lasers) {
  const Settings& s = *work.settings;
  const Walls& walls = *work.walls;
  const int num_lasers = kLasers ? kLasers : s.lasers;
  const bool noisy = work.laser_noise || work.wheel_noise;
  int64_t deadline = next_deadline(s, g);
  const Pack<K> radius_squared(s.n.robot_radius_squared), target_radius_squared(s.n.target_radius_squared);
  while (g.active) {
    if (K > 1 && work.next >= work.count && __builtin_popcountll(g.active) <= kWidth) return;
    Posture<K> p{load_pack<K>(g.x), load_pack<K>(g.y), load_pack<K>(g.cos), load_pack<K>(g.sin)};
    Pack<K> kept[kLasers ? kLasers : 1];
    Pack<K>* lasers = kLasers ? kept : packs<K>(g.lasers);
    for (int i = 0; i < kLasers; ++i) kept[i] = load_pack<K>(g.lasers + i * g.kLanes);
    Pack<K> last_x, last_y;
    uint64_t arrived, ended;
    int64_t now = g.now;
    do {
      if (noisy) {
        g.now = now;
        for (int lane = 0; lane < g.kLanes; ++lane) {
          if (g.active >> lane & 1) g.hear_noise(work, lane, s);
        }
      }
      Pack<K> action[2];
      decide<K, kLasers, kHidden>(s, g, lasers, num_lasers, action);
      last_x = p.x;
      last_y = p.y;
      p = drive(s, p, action, work.wheel_noise ? packs<K>(g.wheel_noise) : nullptr);
      ++now;
      Pack<K> clearance(__builtin_inff());
      for_nearest_points(walls, p, [&](Pack<K>, Pack<K>, Pack<K> squared) { clearance = min(squared, clearance); });
      const Pack<K> dx = s.n.target_x - p.x, dy = s.n.target_y - p.y;
      const Masks<K> near = fma(dx, dx, dy * dy) < target_radius_squared;
      arrived = bits(near);
      ended = (arrived | bits(clearance <= radius_squared)) & g.active;
      for (int i = 0; i < num_lasers; ++i) {
        const Pack<K> length = beam(walls, p, s.laser_cos[i], s.laser_sin[i]);
        lasers[i] = reading(s, length, work.laser_noise ? packs<K>(g.laser_noise) + i : nullptr);
      }
    } while (!ended && now < deadline);
    g.now = now;
    store(g.x, p.x);
    store(g.y, p.y);
    store(g.cos, p.cos);
    store(g.sin, p.sin);
    store(g.last_x, last_x);
    store(g.last_y, last_y);
    for (int i = 0; i < kLasers; ++i) store(g.lasers + i * g.kLanes, kept[i]);
    change_robots(work, g, ended, arrived, start_lasers);
    deadline = next_deadline(s, g);
  }
}

// Moves the active lanes of a group into a narrower one.
template <int From, int To>
void move(const Settings& s, const Group<From>& from, Group<To>& to) {
  int lane = 0;
  for (int old = 0; old < from.kLanes; ++old) {
    if (!(from.active >> old & 1)) continue;
    for (int p = 0; p < s.params; ++p) to.weights[p * to.kLanes + lane] = from.weights[p * from.kLanes + old];
    for (int i = 0; i < s.lasers; ++i) to.lasers[i * to.kLanes + lane] = from.lasers[i * from.kLanes + old];
    to.x[lane] = from.x[old];
    to.y[lane] = from.y[old];
    to.cos[lane] = from.cos[old];
    to.sin[lane] = from.sin[old];
    to.last_x[lane] = from.last_x[old];
    to.last_y[lane] = from.last_y[old];
    to.robot[lane] = from.robot[old];
    to.began[lane] = from.began[old];
    to.active |= uint64_t{1} << lane++;
  }
  to.now = from.now;
}

// Begins the robots from `first` on, one to a lane.
template <int K>
void begin(Work& work, Group<K>& g, int64_t first, int64_t count, const float* start_lasers) {
  for (int lane = 0; lane < count; ++lane) {
    if (!refill(work, g, lane, first + lane, start_lasers)) fill(work, g, lane, start_lasers);
  }
}

template <int kLasers, int kHidden>
void evaluate_sizes(Work& work) {
  constexpr int kMost = 2;
  const Settings& s = *work.settings;
  Buffer buffer(Group<kMost>::floats(s) + Group<1>::floats(s) + 16 * s.lasers);
  Group<1> narrow(s, buffer);
  look_from_start(work, narrow);
  float* start_lasers = buffer.take(16 * s.lasers);
  for (int i = 0; i < s.lasers; ++i) start_lasers[i] = narrow.lasers[i * narrow.kLanes];
  int64_t first;
  const int64_t most = Group<kMost>::kLanes;
  const int64_t count = take(work, work.share < most ? work.share : most, first);
  if (count > kWidth) {
    Group<kMost> wide(s, buffer);
    begin(work, wide, first, count, start_lasers);
    run<kMost, kLasers, kHidden>(work, wide, start_lasers);
    move(s, wide, narrow);
  } else {
    begin(work, narrow, first, count, start_lasers);
  }
  run<1, kLasers, kHidden>(work, narrow, start_lasers);
}

void evaluate(Work* work) {
  const FlushSmallNumbers flush;
  const Settings& s = *work->settings;
  if (s.lasers == 3 && s.num_layers == 3 && s.layers[1] == 8) return evaluate_sizes<3, 8>(*work);
  evaluate_sizes<0, 0>(*work);
}

}  // namespace

extern const Kernels JEDAX_KERNELS = {JEDAX_NAME, kWidth, evaluate, nullptr};

}  // namespace jedax
