// Runs the robots of a call on several threads.
#pragma once

#include <functional>

#include "maze.h"

namespace jedax {

// One call: `groups` sets of `robots` genotypes, all in the same walls. Arrays as in `Work`, group first.
struct Call {
  const float* numbers;  // Settings::Numbers, then the cosines and the sines of the lasers' angles
  int64_t num_numbers;
  const int32_t* sizes;  // steps, activation, neurons of every layer
  int64_t num_sizes;
  const float* walls;    // groups, num_walls, 4
  int64_t groups, robots, params, num_walls;
  Work arrays;           // what goes in and out
  bool record;
};

// Starts a task on another thread, now or later; never waits.
using Schedule = std::function<void(std::function<void()>)>;

// Returns null, or what is wrong with the call. `threads`: how many may work, this one included.
const char* run(const Kernels& kernels, const Call& call, int64_t threads, const Schedule& schedule);

}  // namespace jedax
