// Episodes of which only the outcome matters: a lane whose robot has arrived or is stuck takes the next robot.
#pragma once

#include "maze/group.h"

namespace jedax {
namespace {

// What the lasers read at the start, for every lane.
template <int K>
__attribute__((noinline)) void look_from_start(const Work& work, Group<K>& g) {
  const Settings& s = *work.settings;
  const Pose<K> start{Pack<K>(s.start_x), Pack<K>(s.start_y), Pack<K>(s.start_cos), Pack<K>(s.start_sin)};
  look_around<K, 0>(work, start, packs<K>(g.lasers));
}

// Writes the outcome of the robot in a lane whose episode has ended.
template <int K>
void finish(const Work& work, const Group<K>& g, int lane, bool arrived) {
  const Settings& s = *work.settings;
  const int64_t robot = g.robot[lane], step = g.now - g.began[lane];
  const float dx = s.target_x - g.x[lane], dy = s.target_y - g.y[lane];
  const float missed = -float(s.steps) - s.distance_weight * __builtin_sqrtf(dx * dx + dy * dy);
  // The position before the last step; where steps were left out, the robot stood still in them.
  const bool stood = step < s.steps && !arrived;
  work.fitness[robot] = arrived ? -float(step) : missed;
  work.descriptor[2 * robot] = stood ? g.x[lane] : g.last_x[lane];
  work.descriptor[2 * robot + 1] = stood ? g.y[lane] : g.last_y[lane];
}

// Puts the next robot into a lane; controllers with weights that are not finite fail at once.
template <int K>
bool refill(const Work& work, Group<K>& g, int lane, int64_t robot, const float* start_lasers) {
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
      length = length > s.laser_range ? __builtin_inff() : length;
      const Vector heard = fma(splat(s.laser_noise), splat(noise), splat(length));
      length = heard[0] > 0 ? heard[0] : 0;
    }
    g.lasers[i * g.kLanes + lane] = length > s.laser_range ? s.out_of_range : length;
  }
  return true;
}

template <int K>
void fill(const Work& work, Group<K>& g, int lane, const float* start_lasers) {
  int64_t robot;
  while (take(*work.queue, 1, robot)) {
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
__attribute__((noinline)) void change_robots(const Work& work, Group<K>& g, uint64_t ended, uint64_t arrived,
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
void run(const Work& work, Group<K>& g, const float* start_lasers) {
  const Settings& s = *work.settings;
  const int num_lasers = kLasers ? kLasers : s.lasers;
  const bool noisy = work.laser_noise || work.wheel_noise;
  int64_t deadline = next_deadline(s, g);
  const Pack<K> radius_squared(s.robot_radius_squared), target_radius_squared(s.target_radius_squared);
  while (g.active) {
    if (K > 1 && none_left(*work.queue) && __builtin_popcountll(g.active) <= kWidth) return;
    Pose<K> p{load_pack<K>(g.x), load_pack<K>(g.y), load_pack<K>(g.cos), load_pack<K>(g.sin)};
    Pack<K> kept[kLasers ? kLasers : 1];
    Pack<K>* lasers = kLasers ? kept : packs<K>(g.lasers);
    for (int i = 0; i < kLasers; ++i) kept[i] = load_pack<K>(g.lasers + i * g.kLanes);
    Pack<K> last_x, last_y;
    uint64_t arrived, ended;
    int64_t now = g.now;
    do {
      if (noisy) {
        g.now = now;
        g.hear_noise(work, 1);
      }
      Pack<K> action[2];
      decide<K, kLasers, kHidden>(s, g, lasers, num_lasers, action);
      last_x = p.x;
      last_y = p.y;
      p = drive(s, p, action, work.wheel_noise ? packs<K>(g.wheel_noise) : nullptr);
      ++now;
      const Pack<K> clearance = look_around<K, kLasers>(work, p, lasers);
      const Pack<K> dx = s.target_x - p.x, dy = s.target_y - p.y;
      const Masks<K> near = fma(dx, dx, dy * dy) < target_radius_squared;
      arrived = bits(near);
      ended = (arrived | bits(clearance <= radius_squared)) & g.active;
      for (int i = 0; i < num_lasers; ++i) {
        lasers[i] = reading(s, lasers[i], work.laser_noise ? packs<K>(g.laser_noise) + i : nullptr);
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
void begin(const Work& work, Group<K>& g, int64_t first, int64_t count, const float* start_lasers) {
  for (int lane = 0; lane < count; ++lane) {
    if (!refill(work, g, lane, first + lane, start_lasers)) fill(work, g, lane, start_lasers);
  }
}

template <int kLasers, int kHidden>
void evaluate_sizes(const Work& work) {
  constexpr int kMost = 2;
  const Settings& s = *work.settings;
  Buffer buffer(Group<kMost>::floats(s) + Group<1>::floats(s) + 16 * s.lasers);
  if (!buffer.ok()) return;
  Group<1> narrow(s, buffer);
  look_from_start(work, narrow);
  float* start_lasers = buffer.take(16 * s.lasers);
  for (int i = 0; i < s.lasers; ++i) start_lasers[i] = narrow.lasers[i * narrow.kLanes];
  int64_t first;
  const int64_t most = Group<kMost>::kLanes, share = work.queue->share;
  const int64_t count = take(*work.queue, share < most ? share : most, first);
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

}  // namespace
}  // namespace jedax
