// Robots under way, one in each lane: their controllers, poses and readings.
#pragma once

#include "maze/robot.h"

namespace jedax {
namespace {

// Robots under way, one in each active lane.
template <int K>
struct Group {
  static constexpr int kLanes = K * kWidth;
  float *weights, *senses, *lasers, *laser_noise, *wheel_noise, *values;
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
    return int64_t{kLanes} * (s.params + 2 * s.lasers + 4 + 2 * widest(s));
  }
  Group(const Settings& s, Buffer& buffer)
      : weights(buffer.take(int64_t{kLanes} * s.params)),
        senses(buffer.take(kLanes * (s.lasers + 2))),
        lasers(senses + 2 * kLanes),
        laser_noise(buffer.take(kLanes * s.lasers)),
        wheel_noise(buffer.take(kLanes * 2)),
        values(buffer.take(2 * kLanes * widest(s))) {
    for (int lane = 0; lane < kLanes; ++lane) place(s, lane);
  }

  void place(const Settings& s, int lane) {
    x[lane] = last_x[lane] = s.start_x;
    y[lane] = last_y[lane] = s.start_y;
    cos[lane] = s.start_cos;
    sin[lane] = s.start_sin;
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

  // Lays out the noise of every active lane for its step: that of the wheels, and that of the lasers after it. Row
  // `now - began + after` of a robot's lasers is what they hear.
  void hear_noise(const Work& work, int after) {
    const Settings& s = *work.settings;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      const int64_t step = now - began[lane], id = robot[lane];
      for (int i = 0; work.laser_noise && i < s.lasers; ++i) {
        laser_noise[i * kLanes + lane] = work.laser_noise[(id * (s.steps + 1) + step + after) * s.lasers + i];
      }
      for (int i = 0; work.wheel_noise && i < 2; ++i) {
        wheel_noise[i * kLanes + lane] = work.wheel_noise[(id * s.steps + step) * 2 + i];
      }
    }
  }
};

// Measures all beams, kBeams at a time (0: any number); returns the squared distance to the nearest wall.
template <int K, int kBeams>
JEDAX_INLINE Pack<K> look_around(const Work& work, const Pose<K>& p, Pack<K>* beams) {
  const Settings& s = *work.settings;
  constexpr int step = kBeams ? kBeams : 1;
  Pack<K> clearance;
  for (int i = 0; i < (kBeams ? kBeams : s.lasers); i += step) {
    const Sight<K, step> seen = look<K, step>(*work.walls, p, s.laser_cos + i, s.laser_sin + i);
    for (int b = 0; b < step; ++b) beams[i + b] = seen.beams[b];
    clearance = seen.clearance;
  }
  return clearance;
}

// One decision. `in`: lasers, with the bumpers before them where they are felt.
template <int K, int kInputs, int kHidden>
JEDAX_INLINE void decide(const Settings& s, const Group<K>& g, const Pack<K>* in, int inputs, Pack<K>* action) {
  Pack<K> sums[2];
  if constexpr (kHidden > 0) {
    Pack<K> hidden[kHidden];
    layer<K>(g.weights, kInputs, kHidden, in, hidden);
    activate_all(s.activation, kHidden, hidden);
    layer<K>(g.weights + (kInputs + 1) * kHidden * g.kLanes, kHidden, 2, hidden, sums);
  } else {
    const float* weights = g.weights;
    Pack<K>* values = packs<K>(g.values);
    Pack<K>* spare = values + g.widest(s);
    for (int number = 1; number + 1 < s.num_layers; ++number) {
      const int outputs = s.layers[number];
      layer<K>(weights, inputs, outputs, in, values);
      activate_all(s.activation, outputs, values);
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

}  // namespace
}  // namespace jedax
