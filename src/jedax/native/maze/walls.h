// Walls as the kernels want them, made from a list of segments.
#pragma once

#include <vector>

#include "maze/maze.h"

namespace jedax {

class WallList {
 public:
  // `segments`: (count, 4), each x1, y1, x2, y2. Walls that lie one upon the other become one, if `join`.
  WallList(const float* segments, int64_t count, bool join);
  WallList(const WallList&) = delete;
  const Walls& walls() const { return walls_; }

 private:
  std::vector<Straight> vertical_, horizontal_;
  std::vector<Slanted> slanted_;
  Walls walls_;
};

}  // namespace jedax
