#include "core/simd.h"
#include "repertoire/nearest.h"

namespace jedax {
namespace {

// The tiles of a block of points are found side by side, as lanes of one vector, and fetched meanwhile.
constexpr int64_t kBlock = 16;

// XLA fuses the multiplications with the additions where the processor can, and nearly equal distances depend on it.
template <bool fused, int dimensions>
JEDAX_INLINE float squared_distance(const float* a, const float* b) {
  float sum = (a[0] - b[0]) * (a[0] - b[0]);
  for (int i = 1; i < dimensions; ++i) {
    const float difference = a[i] - b[i];
    sum = fused ? __builtin_fmaf(difference, difference, sum) : sum + difference * difference;
  }
  return sum;
}

template <bool fused, int dimensions>
JEDAX_INLINE int32_t nearest_of_all(const Search& search, const float* point) {
  int32_t found = 0;
  float least = __builtin_inff();
  for (int64_t index = 0; index < search.cells; ++index) {
    const float squared = squared_distance<fused, dimensions>(point, search.centroids + index * dimensions);
    if (squared < least) least = squared, found = int32_t(index);
  }
  return found;
}

template <bool fused, int dimensions>
JEDAX_INLINE void nearest_of_block(const Search& search, const float* points, int32_t* cells) {
  int32_t row[kBlock], outside[kBlock], found[kBlock], any = 0;
  for (int64_t j = 0; j < kBlock; ++j) {
    int32_t tile = 0, out = 0;
    for (int i = 0; i < dimensions; ++i) {
      const float at = points[j * dimensions + i];
      out |= int32_t(at < 0) | int32_t(at > 1);
      const float end = float(search.shape[i] - 1), place = at * float(search.shape[i]);
      // What is not a number goes to the first tile.
      const float above = place > 0 ? place : 0;
      tile = tile * search.shape[i] + int32_t(above < end ? above : end);
    }
    row[j] = tile * int32_t(search.slots);
    __builtin_prefetch(search.candidates + row[j]);
    outside[j] = out;
    any |= out;
  }
  for (int64_t j = 0; j < kBlock; ++j) {
    const int32_t* candidates = search.candidates + row[j];
    const float* point = points + j * dimensions;
    int32_t last = candidates[0], nearest = last;
    float least = squared_distance<fused, dimensions>(point, search.centroids + last * dimensions);
    // A tile repeats its last candidate.
    for (int32_t slot = 1; slot < search.slots && candidates[slot] != last; ++slot) {
      last = candidates[slot];
      const float squared = squared_distance<fused, dimensions>(point, search.centroids + last * dimensions);
      nearest = squared < least ? last : nearest;
      least = squared < least ? squared : least;
    }
    found[j] = nearest;
  }
  if (any != 0) {
    for (int64_t j = 0; j < kBlock; ++j) {
      if (outside[j] != 0) found[j] = nearest_of_all<fused, dimensions>(search, points + j * dimensions);
    }
  }
  __builtin_memcpy(cells, found, sizeof(found));
}

template <bool fused, int dimensions>
JEDAX_INLINE void nearest_of_each(const Search& search, const float* points, int64_t count,
                                                           int32_t* cells) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    nearest_of_block<fused, dimensions>(search, points + i * dimensions, cells + i);
  }
  if (i == count) return;
  float rest[kBlock * dimensions] = {};
  int32_t found[kBlock];
  __builtin_memcpy(rest, points + i * dimensions, sizeof(float) * (count - i) * dimensions);
  nearest_of_block<fused, dimensions>(search, rest, found);
  __builtin_memcpy(cells + i, found, sizeof(int32_t) * (count - i));
}

template <bool fused>
JEDAX_INLINE void nearest_of(const Search& search, const float* points, int64_t count,
                                                   int32_t* cells) {
  if (search.dimensions == 1) nearest_of_each<fused, 1>(search, points, count, cells);
  if (search.dimensions == 2) nearest_of_each<fused, 2>(search, points, count, cells);
  if (search.dimensions == 3) nearest_of_each<fused, 3>(search, points, count, cells);
}

}  // namespace

template <>
void nearest<JEDAX_ISA>(const Search& search, bool fused, const float* points, int64_t count, int32_t* cells) {
  fused ? nearest_of<true>(search, points, count, cells) : nearest_of<false>(search, points, count, cells);
}

}  // namespace jedax
