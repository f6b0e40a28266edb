#include "maze/walls.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace jedax {
namespace {

// A beam through the very end of a wall hits it: slack on the position along the wall, 0 to 1.
constexpr double kEndTolerance = 1e-6;

Straight straight(float at, float from, float to) {
  const float low = std::min(from, to), high = std::max(from, to);
  const float middle = float((double(low) + high) / 2);
  const double half = std::max(double(high) - middle, double(middle) - low);
  return {at, low, high, middle, float(half), float(half + kEndTolerance * (double(high) - low))};
}

Slanted slanted(double x1, double y1, double x2, double y2) {
  const double length = std::hypot(x2 - x1, y2 - y1);
  const double tangent_x = (x2 - x1) / length, tangent_y = (y2 - y1) / length;
  return {float(-tangent_y),
          float(tangent_x),
          float(tangent_x * y1 - tangent_y * x1),
          float(tangent_x),
          float(tangent_y),
          float((tangent_x * (x1 + x2) + tangent_y * (y1 + y2)) / 2),
          float(length / 2),
          float(length / 2 + kEndTolerance * length)};
}

// Neither a beam nor the distance to the nearest wall can tell two walls in one line that touch from a single one.
void join_touching(std::vector<Straight>& walls) {
  std::sort(walls.begin(), walls.end(), [](const Straight& a, const Straight& b) {
    return std::tie(a.at, a.low) < std::tie(b.at, b.low);
  });
  size_t kept = 0;
  for (const Straight& wall : walls) {
    if (kept > 0 && walls[kept - 1].at == wall.at && wall.low <= walls[kept - 1].high) {
      walls[kept - 1] = straight(wall.at, walls[kept - 1].low, std::max(walls[kept - 1].high, wall.high));
    } else {
      walls[kept++] = wall;
    }
  }
  walls.resize(kept);
}

}  // namespace

WallList::WallList(const float* segments, int64_t count, bool join) {
  for (int64_t i = 0; i < count; ++i, segments += 4) {
    const float x1 = segments[0], y1 = segments[1], x2 = segments[2], y2 = segments[3];
    if (x1 == x2) {
      vertical_.push_back(straight(x1, y1, y2));
    } else if (y1 == y2) {
      horizontal_.push_back(straight(y1, x1, x2));
    } else {
      slanted_.push_back(slanted(x1, y1, x2, y2));
    }
  }
  if (join) {
    join_touching(vertical_);
    join_touching(horizontal_);
  }
  walls_ = {vertical_.data(),         horizontal_.data(),         slanted_.data(),
            int(vertical_.size()), int(horizontal_.size()), int(slanted_.size())};
}

}  // namespace jedax
