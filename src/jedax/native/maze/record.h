// Whole episodes with every step, also those after the robot has arrived or got stuck.
#pragma once

#include "maze/group.h"

namespace jedax {
namespace {

// +1 for a bumper that touches a wall, -1 for one that does not: first the right, then the left.
template <int K>
void feel(const Settings& s, const Walls& walls, const Pose<K>& p, const Masks<K>& stuck, Pack<K>* bumpers) {
  const Pack<K> zero(0.0f), contact(1.0f), none(-1.0f), radius_squared(s.robot_radius_squared);
  Pack<K> right = none, left = none;
  for_nearest_points(walls, p, [&](Pack<K> dx, Pack<K> dy, Pack<K> squared) {
    const Pack<K> ahead = dx * p.cos + dy * p.sin, aside = dy * p.cos - dx * p.sin;
    const Masks<K> touched = (squared < radius_squared) & (zero < ahead);
    right = select(touched & (aside <= zero), contact, right);
    left = select(touched & (zero <= aside), contact, left);
  });
  // Bumpers are read before the move; a robot that was not stuck then touched nothing.
  bumpers[0] = select(stuck, right, none);
  bumpers[1] = select(stuck, left, none);
}

// Reads the lasers; returns the squared distance to the nearest wall.
template <int K>
Pack<K> sense(const Work& work, Group<K>& g, const Pose<K>& p) {
  Pack<K>* lasers = packs<K>(g.lasers);
  const Pack<K> clearance = look_around<K, 0>(work, p, lasers);
  for (int i = 0; i < work.settings->lasers; ++i) {
    lasers[i] = reading(*work.settings, lasers[i], work.laser_noise ? packs<K>(g.laser_noise) + i : nullptr);
  }
  return clearance;
}

// Copies what a step was for every robot: before the step its senses, the action, the position after.
template <int K>
void write(const Work& work, const Group<K>& g, int step, const float* action, const Pose<K>& p) {
  const Settings& s = *work.settings;
  alignas(64) float x[Group<K>::kLanes], y[Group<K>::kLanes];
  store(x, p.x);
  store(y, p.y);
  for (int lane = 0; lane < g.kLanes && g.active >> lane & 1; ++lane) {
    const int64_t row = g.robot[lane] * s.steps + step;
    float* observation = work.observations + row * (s.lasers + 2);
    for (int i = 0; i < s.lasers; ++i) observation[i] = g.senses[(2 + i) * g.kLanes + lane];
    for (int i = 0; i < 2; ++i) {
      observation[s.lasers + i] = g.senses[i * g.kLanes + lane];
      work.actions[2 * row + i] = action[i * g.kLanes + lane];
    }
    work.positions[2 * row] = x[lane];
    work.positions[2 * row + 1] = y[lane];
  }
}

template <int K>
void record_group(const Work& work, Group<K>& g) {
  const Settings& s = *work.settings;
  Pose<K> p{Pack<K>(s.start_x), Pack<K>(s.start_y), Pack<K>(s.start_cos), Pack<K>(s.start_sin)};
  const Pack<K> radius_squared(s.robot_radius_squared), target_radius_squared(s.target_radius_squared);
  Pack<K>* bumpers = packs<K>(g.senses);
  bumpers[0] = bumpers[1] = Pack<K>(-1.0f);
  Masks<K> stuck = radius_squared < Pack<K>(0.0f);  // none
  uint64_t arrived = 0;
  g.now = 0;
  g.hear_noise(work, 0);
  sense(work, g, p);
  for (int step = 0; step < s.steps; ++step) {
    Pack<K> action[2];
    decide<K, 0, 0>(s, g, packs<K>(g.senses), s.lasers + 2, action);
    g.hear_noise(work, 1);
    const Pose<K> moved = drive(s, p, action, work.wheel_noise ? packs<K>(g.wheel_noise) : nullptr);
    p = {select(stuck, p.x, moved.x), select(stuck, p.y, moved.y), select(stuck, p.cos, moved.cos),
         select(stuck, p.sin, moved.sin)};
    write(work, g, step, reinterpret_cast<float*>(action), p);
    const Pack<K> clearance = sense(work, g, p);
    feel(s, *work.walls, p, stuck, bumpers);
    stuck = clearance <= radius_squared;
    const Pack<K> dx = s.target_x - p.x, dy = s.target_y - p.y;
    const uint64_t near = bits(fma(dx, dx, dy * dy) < target_radius_squared);
    for (int lane = 0; lane < g.kLanes && g.active >> lane & 1; ++lane) {
      if (near & ~arrived & uint64_t{1} << lane) work.length[g.robot[lane]] = step + 1;
    }
    arrived |= near;
    ++g.now;
  }
}

void record_all(const Work& work) {
  const Settings& s = *work.settings;
  Buffer buffer(Group<1>::floats(s));
  if (!buffer.ok()) return;
  Group<1> g(s, buffer);
  int64_t first;
  while (const int64_t count = take(*work.queue, kWidth, first)) {
    g.active = (uint64_t{1} << count) - 1;
    for (int lane = 0; lane < count; ++lane) {
      g.robot[lane] = first + lane;
      g.began[lane] = 0;
      g.program(s, lane, work.genotypes + (first + lane) * s.params, true);
      work.length[first + lane] = s.steps;
    }
    record_group(work, g);
  }
}

}  // namespace
}  // namespace jedax
