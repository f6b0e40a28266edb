// The nearest centroid of points.
#pragma once

#include <stdint.h>

#include "core/isa.h"

namespace jedax {

// Centroids in the unit box, and the tiles of `jedax.repertoire.cells.Tiles`.
struct Search {
  const float* centroids;
  const int32_t *candidates, *shape;
  int64_t cells, dimensions, slots;
};

// Finds the nearest centroid of each point, the one with the lowest index of several. `fused`: whether distances are
// computed with fused multiplications and additions.
template <Isa>
void nearest(const Search& search, bool fused, const float* points, int64_t count, int32_t* cells);

}  // namespace jedax
