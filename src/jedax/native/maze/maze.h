// A maze as the kernels see it, and the robots they simulate.
#pragma once

#include <stdint.h>

#include "core/isa.h"
#include "core/queue.h"

namespace jedax {

// The settings that Python passes, by these names, and what follows from them.
struct Settings {
  int32_t steps;
  float start_x, start_y, start_cos, start_sin;
  float target_x, target_y, target_radius_squared;
  float distance_weight;  // what one unit of distance to the target costs a robot that never arrives
  float robot_radius_squared;
  float wheel_speed;
  float turn;  // half the angle of a turn for each unit by which the wheels' travel differs
  float laser_range;
  float out_of_range;              // what a laser reads that meets no wall within its range
  float laser_noise, wheel_noise;  // standard deviations
  const float *laser_cos, *laser_sin;
  int lasers, activation;
  const int32_t* layers;  // neurons of every layer, inputs and outputs included
  int num_layers, params;
  float largest;  // the largest half turn in one step
};

// A wall along an axis: `at` on the other one, from `low` to `high`. A beam meets it nearer than `reach` to `middle`;
// its nearest point is at most `half` from there.
struct Straight {
  float at, low, high, middle, half, reach;
};

// Any other wall: unit normal and tangent. A point's place in the wall's own axes is (p . normal - off, p . tangent -
// middle); the wall reaches `half` to both sides there, for beams `reach`.
struct Slanted {
  float normal_x, normal_y, off, tangent_x, tangent_y, middle, half, reach;
};

struct Walls {
  const Straight* vertical;
  const Straight* horizontal;
  const Slanted* slanted;
  int num_vertical, num_horizontal, num_slanted;
};

// Robots to simulate, and where their outcomes go. Arrays are row-major with one row for each robot.
struct Work {
  const Settings* settings;
  const Walls* walls;
  Queue* queue;              // of the robots
  const float* genotypes;    // params
  const float* laser_noise;  // steps + 1, lasers; standard normal; null: none
  const float* wheel_noise;  // steps, 2; standard normal; null: none
  float* fitness;
  float* descriptor;    // 2
  float* observations;  // steps, lasers + 2
  float* actions;       // steps, 2
  float* positions;     // steps, 2
  int32_t* length;
};

// Each takes robots from the queue until none is left; any number of threads may.
template <Isa>
void evaluate(const Work&);
template <Isa>
void record(const Work&);

template <Isa>
int width();  // robots in one vector

}  // namespace jedax
