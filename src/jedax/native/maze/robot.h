// A robot's senses, controller and wheels; what jedax.tasks.maze.robot and jedax.networks say, for a pack.
#pragma once

#include "maths.h"

namespace jedax {
namespace {

template <int K>
struct Posture {
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
JEDAX_INLINE Sight<K, kBeams> look(const Walls& walls, const Posture<K>& p, const float* laser_cos,
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
JEDAX_INLINE void for_nearest_points(const Walls& walls, const Posture<K>& p, Found found) {
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
  const Pack<K> range(s.n.laser_range), beyond(s.n.beyond);
  if (noise) {
    length = select(range < length, Pack<K>(__builtin_inff()), length);
    length = max(Pack<K>(0.0f), fma(Pack<K>(s.n.laser_noise), *noise, length));
  }
  return select(range < length, beyond, length);
}

// The posture after one step; `action` in [-1, 1]; `noise`: standard normal, for left and right wheel.
template <int K>
JEDAX_INLINE Posture<K> drive(const Settings& s, const Posture<K>& p, const Pack<K>* action, const Pack<K>* noise) {
  const Pack<K> speed(s.n.wheel_speed), reverse(-s.n.wheel_speed);
  Pack<K> left = action[0] * speed, right = action[1] * speed;
  if (noise) {
    left = min(speed, max(reverse, fma(Pack<K>(s.n.wheel_noise), noise[0], left)));
    right = min(speed, max(reverse, fma(Pack<K>(s.n.wheel_noise), noise[1], right)));
  }
  const Pack<K> half = (right - left) * s.n.turn;
  Pack<K> sinc, cos;
  sinc_cos(s.largest, half, sinc, cos);
  const Pack<K> sin = half * sinc;
  const Pack<K> chord = (left + right) * 0.5f * sinc;
  const Pack<K> middle_cos = fnma(p.sin, sin, p.cos * cos), middle_sin = fma(p.cos, sin, p.sin * cos);
  return {fma(chord, middle_cos, p.x), fma(chord, middle_sin, p.y), fnma(middle_sin, sin, middle_cos * cos),
          fma(middle_cos, sin, middle_sin * cos)};
}

// One layer: for each output its bias, then its weights, each a pack. Sums are taken in this order.
template <int K>
JEDAX_INLINE void layer(const float* weights, int inputs, int outputs, const Pack<K>* in, Pack<K>* sums) {
  constexpr int lanes = K * kWidth, block = 4;
  const int row = (inputs + 1) * lanes;
  int j = 0;
  for (; j + block <= outputs; j += block, weights += block * row) {
    Pack<K> sum[block];
    for (int b = 0; b < block; ++b) sum[b] = load_pack<K>(weights + b * row);
    for (int i = 0; i < inputs; ++i) {
      for (int b = 0; b < block; ++b) sum[b] = fma(in[i], load_pack<K>(weights + b * row + (i + 1) * lanes), sum[b]);
    }
    for (int b = 0; b < block; ++b) sums[j + b] = sum[b];
  }
  for (; j < outputs; ++j, weights += row) {
    Pack<K> sum = load_pack<K>(weights);
    for (int i = 0; i < inputs; ++i) sum = fma(in[i], load_pack<K>(weights + (i + 1) * lanes), sum);
    sums[j] = sum;
  }
}

}  // namespace
}  // namespace jedax
