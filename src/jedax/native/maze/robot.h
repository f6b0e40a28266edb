// A robot's senses, controller and wheels; what jedax.tasks.maze.robot and jedax.networks say, for a pack.
#pragma once

#include "core/lanes.h"
#include "core/maths.h"
#include "maze/maze.h"

namespace jedax {
namespace {

template <int K>
struct Pose {
  Pack<K> x, y, cos, sin;
};

// What the walls mean to a robot: the lengths of kBeams beams, inf where one meets no wall, and the squared distance to
// the nearest wall.
template <int K, int kBeams>
struct Sight {
  Pack<K> beams[kBeams];
  Pack<K> clearance;
};

template <int K, int kBeams>
JEDAX_INLINE Sight<K, kBeams> look(const Walls& walls, const Pose<K>& p, const float* laser_cos,
                                   const float* laser_sin) {
  const Pack<K> zero(0.0f);
  Pack<K> dx[kBeams], dy[kBeams], per_x[kBeams], per_y[kBeams];
  Sight<K, kBeams> seen;
  seen.clearance = Pack<K>(__builtin_inff());
  for (int b = 0; b < kBeams; ++b) {
    dx[b] = fnma(p.sin, Pack<K>(laser_sin[b]), p.cos * laser_cos[b]);
    dy[b] = fma(p.cos, Pack<K>(laser_sin[b]), p.sin * laser_cos[b]);
    per_x[b] = -1.0f / dx[b];
    per_y[b] = -1.0f / dy[b];
    seen.beams[b] = Pack<K>(__builtin_inff());
  }
  const auto near = [&](Pack<K> away, Pack<K> along, float half) {
    const Pack<K> past = max(zero, abs(along) - half);
    seen.clearance = min(fma(past, past, away * away), seen.clearance);
  };
  for (const Straight* wall = walls.vertical; wall != walls.vertical + walls.num_vertical; ++wall) {
    const Pack<K> away = p.x - wall->at, along = p.y - wall->middle;
    near(away, along, wall->half);
    for (int b = 0; b < kBeams; ++b) {
      const Pack<K> length = fma(away, per_x[b], zero);  // never -0
      seen.beams[b] = min_within(length, fma(length, dy[b], along), Pack<K>(wall->reach), seen.beams[b]);
    }
  }
  for (const Straight* wall = walls.horizontal; wall != walls.horizontal + walls.num_horizontal; ++wall) {
    const Pack<K> away = p.y - wall->at, along = p.x - wall->middle;
    near(away, along, wall->half);
    for (int b = 0; b < kBeams; ++b) {
      const Pack<K> length = fma(away, per_y[b], zero);
      seen.beams[b] = min_within(length, fma(length, dx[b], along), Pack<K>(wall->reach), seen.beams[b]);
    }
  }
  for (const Slanted* wall = walls.slanted; wall != walls.slanted + walls.num_slanted; ++wall) {
    const Pack<K> normal_x(wall->normal_x), normal_y(wall->normal_y);
    const Pack<K> tangent_x(wall->tangent_x), tangent_y(wall->tangent_y);
    const Pack<K> away = fma(p.x, normal_x, fma(p.y, normal_y, Pack<K>(-wall->off)));
    const Pack<K> along = fma(p.x, tangent_x, fma(p.y, tangent_y, Pack<K>(-wall->middle)));
    near(away, along, wall->half);
    for (int b = 0; b < kBeams; ++b) {
      const Pack<K> across = fma(dx[b], normal_x, dy[b] * normal_y);
      const Pack<K> length = (zero - away) / across + zero;
      const Pack<K> place = fma(length, fma(dx[b], tangent_x, dy[b] * tangent_y), along);
      seen.beams[b] = min_within(length, place, Pack<K>(wall->reach), seen.beams[b]);
    }
  }
  return seen;
}

// Calls `found(dx, dy, squared)` for every wall: the vector to its nearest point.
template <int K, class Found>
JEDAX_INLINE void for_nearest_points(const Walls& walls, const Pose<K>& p, Found found) {
  const Pack<K> zero(0.0f);
  for (int i = 0; i < walls.num_vertical; ++i) {
    const Straight& wall = walls.vertical[i];
    const Pack<K> dx = wall.at - p.x;
    const Pack<K> dy = max(wall.low - p.y, min(wall.high - p.y, zero));
    found(dx, dy, fma(dy, dy, dx * dx));
  }
  for (int i = 0; i < walls.num_horizontal; ++i) {
    const Straight& wall = walls.horizontal[i];
    const Pack<K> dx = max(wall.low - p.x, min(wall.high - p.x, zero));
    const Pack<K> dy = wall.at - p.y;
    found(dx, dy, fma(dx, dx, dy * dy));
  }
  for (int i = 0; i < walls.num_slanted; ++i) {
    const Slanted& wall = walls.slanted[i];
    const Pack<K> away = fma(p.x, Pack<K>(wall.normal_x), fma(p.y, Pack<K>(wall.normal_y), Pack<K>(-wall.off)));
    const Pack<K> along = fma(p.x, Pack<K>(wall.tangent_x), fma(p.y, Pack<K>(wall.tangent_y), Pack<K>(-wall.middle)));
    const Pack<K> past = max(zero - along - wall.half, min(wall.half - along, zero));
    const Pack<K> dx = fnma(away, Pack<K>(wall.normal_x), past * wall.tangent_x);
    const Pack<K> dy = fnma(away, Pack<K>(wall.normal_y), past * wall.tangent_y);
    found(dx, dy, fma(past, past, away * away));
  }
}

// What a laser reads whose beam is this long; `noise`: standard normal.
template <int K>
JEDAX_INLINE Pack<K> reading(const Settings& s, Pack<K> length, const Pack<K>* noise) {
  const Pack<K> range(s.laser_range), out_of_range(s.out_of_range);
  if (noise) {
    length = select(range < length, Pack<K>(__builtin_inff()), length);
    length = max(Pack<K>(0.0f), fma(Pack<K>(s.laser_noise), *noise, length));
  }
  return select(range < length, out_of_range, length);
}

// The pose after one step; `action` in [-1, 1]; `noise`: standard normal, for left and right wheel.
template <int K>
JEDAX_INLINE Pose<K> drive(const Settings& s, const Pose<K>& p, const Pack<K>* action, const Pack<K>* noise) {
  const Pack<K> speed(s.wheel_speed), reverse(-s.wheel_speed);
  Pack<K> left = action[0] * speed, right = action[1] * speed;
  if (noise) {
    left = min(speed, max(reverse, fma(Pack<K>(s.wheel_noise), noise[0], left)));
    right = min(speed, max(reverse, fma(Pack<K>(s.wheel_noise), noise[1], right)));
  }
  const Pack<K> half = (right - left) * s.turn;
  Pack<K> sinc, cos;
  sinc_cos(s.largest, half, sinc, cos);
  const Pack<K> sin = half * sinc;
  const Pack<K> chord = (left + right) * 0.5f * sinc;
  const Pack<K> middle_cos = fnma(p.sin, sin, p.cos * cos), middle_sin = fma(p.cos, sin, p.sin * cos);
  return {fma(chord, middle_cos, p.x), fma(chord, middle_sin, p.y), fnma(middle_sin, sin, middle_cos * cos),
          fma(middle_cos, sin, middle_sin * cos)};
}

}  // namespace
}  // namespace jedax
