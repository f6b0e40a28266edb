// A robot's senses, controller and wheels; what jedax.tasks.maze.robot and jedax.tasks.policy say, for a pack.
#pragma once

#include "maths.h"

namespace jedax {
namespace {

template <int K>
struct Posture {
  Pack<K> x, y, cos, sin;
};

// The length of a beam to the nearest wall, inf if it meets none.
template <int K>
JEDAX_INLINE Pack<K> beam(const Walls& walls, const Posture<K>& p, float laser_cos, float laser_sin) {
  const Pack<K> zero(0.0f);
  const Pack<K> dx = fnma(p.sin, Pack<K>(laser_sin), p.cos * laser_cos);
  const Pack<K> dy = fma(p.cos, Pack<K>(laser_sin), p.sin * laser_cos);
  const Pack<K> per_x = -1.0f / dx, per_y = -1.0f / dy;
  Pack<K> nearest(__builtin_inff());
  for (int i = 0; i < walls.num_vertical; ++i) {
    const Straight& wall = walls.vertical[i];
    const Pack<K> length = (p.x - wall.at) * per_x;
    const Pack<K> place = fma(length, dy, p.y);
    const Masks<K> hit = (zero <= length) & (Pack<K>(wall.reach_low) <= place) & (place <= Pack<K>(wall.reach_high));
    nearest = min_where(hit, length, nearest);
  }
  for (int i = 0; i < walls.num_horizontal; ++i) {
    const Straight& wall = walls.horizontal[i];
    const Pack<K> length = (p.y - wall.at) * per_y;
    const Pack<K> place = fma(length, dx, p.x);
    const Masks<K> hit = (zero <= length) & (Pack<K>(wall.reach_low) <= place) & (place <= Pack<K>(wall.reach_high));
    nearest = min_where(hit, length, nearest);
  }
  for (int i = 0; i < walls.num_slanted; ++i) {
    const Slanted& wall = walls.slanted[i];
    const Pack<K> away = fma(p.x, Pack<K>(wall.normal_x), fma(p.y, Pack<K>(wall.normal_y), Pack<K>(-wall.off)));
    const Pack<K> along = fma(p.x, Pack<K>(wall.tangent_x), fma(p.y, Pack<K>(wall.tangent_y), Pack<K>(-wall.from)));
    const Pack<K> across = fma(dx, Pack<K>(wall.normal_x), dy * wall.normal_y);
    const Pack<K> length = (zero - away) / across;
    const Pack<K> place = fma(length, fma(dx, Pack<K>(wall.tangent_x), dy * wall.tangent_y), along);
    const Masks<K> hit = (zero <= length) & (Pack<K>(wall.reach_low) <= place) & (place <= Pack<K>(wall.reach_high));
    nearest = min_where(hit, length, nearest);
  }
  return nearest;
}

// Calls `found(dx, dy, squared)` for every wall: the vector to its nearest point.
template <int K, class Found>
JEDAX_INLINE void for_nearest_points(const Walls& walls, const Posture<K>& p, Found found) {
  const Pack<K> zero(0.0f);
  for (int i = 0; i < walls.num_vertical; ++i) {
    const Straight& wall = walls.vertical[i];
    const Pack<K> dx = wall.at - p.x;
    const Pack<K> dy = max(wall.low - p.y, min(wall.high - p.y, zero));
    found(dx, dy, fma(dx, dx, dy * dy));
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
    const Pack<K> along = fma(p.x, Pack<K>(wall.tangent_x), fma(p.y, Pack<K>(wall.tangent_y), Pack<K>(-wall.from)));
    const Pack<K> past = max(zero - along, min(wall.length - along, zero));
    const Pack<K> dx = fnma(away, Pack<K>(wall.normal_x), past * wall.tangent_x);
    const Pack<K> dy = fnma(away, Pack<K>(wall.normal_y), past * wall.tangent_y);
    found(dx, dy, fma(away, away, past * past));
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
