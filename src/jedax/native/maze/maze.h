// What a maze is to the kernels, and the work they are given.
#pragma once

#include <stdint.h>

namespace jedax {

enum Activation { kRelu, kTanh, kSigmoid, kElu, kGelu, kSilu, kActivations };

struct Settings {
  // In this order in the array that Python passes; the lasers' cosines follow, then their sines.
  struct Numbers {
    float x, y, cos, sin;  // of the start
    float target_x, target_y, target_radius_squared, distance_weight;
    float robot_radius_squared, wheel_speed, turn;  // turn: half a turn's angle per difference of the wheels' travel
    float laser_range, beyond, laser_noise, wheel_noise;
  } n;
  const float* laser_cos;
  const float* laser_sin;
  int steps, activation, lasers;
  const int32_t* layers;  // neurons of every layer, inputs and outputs included
  int num_layers;
  int params;
  float largest;  // the largest half turn in one step
};

// A wall along an axis: `at` on the other one, from `low` to `high`. Its beams are those that meet its line nearer than
// `reach` to `middle`; its nearest point is `half` from there at most.
struct Straight {
  float at, low, high, middle, half, reach;
};

// Any other wall: unit normal and tangent; a point's place in the wall's own axes is (p . normal - off, p . tangent -
// middle), and the wall reaches `half` to both sides there, for beams `reach`.
struct Slanted {
  float normal_x, normal_y, off, tangent_x, tangent_y, middle, half, reach;
};

struct Walls {
  const Straight* vertical;
  const Straight* horizontal;
  const Slanted* slanted;
  int num_vertical, num_horizontal, num_slanted;
};

// Robots to simulate, and where their outcomes go. Arrays are row-major with one row per robot.
struct Work {
  const Settings* settings;
  const Walls* walls;
  int64_t count;
  const float* genotypes;    // params
  const float* laser_noise;  // steps + 1, lasers; standard normal; null: none
  const float* wheel_noise;  // steps, 2; standard normal; null: none
  float* fitness;
  float* descriptor;     // 2
  float* observations;   // steps, lasers + 2
  float* actions;        // steps, 2
  float* positions;      // steps, 2
  int32_t* length;
  int64_t share;         // robots that one thread takes at first
  int64_t next;          // the first robot that no thread has taken; atomic
};

// The kernels of one instruction set. Each takes robots from `Work` until none is left; any number of threads may.
struct Kernels {
  const char* name;
  int width;
  void (*evaluate)(Work*);
  void (*record)(Work*);
};

}  // namespace jedax
