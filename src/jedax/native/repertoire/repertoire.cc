// Adds a batch to a repertoire, and finds the nearest centroids: in one pass each, with the bits of jedax.repertoire.

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/ffi.h"
#include "repertoire/nearest.h"

namespace jedax {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

ffi::Error assign(Floats points, Floats centroids, Ints candidates, ffi::Span<const int32_t> shape,
                  ffi::Result<Ints> cells) {
  const int64_t dimensions = int64_t(shape.size());
  if (dimensions < 1 || dimensions > 3) return ffi::Error::InvalidArgument("shape: one to three dimensions");
  const Search search{centroids.typed_data(), candidates.typed_data(), shape.begin(),
                      int64_t(centroids.element_count()) / dimensions, dimensions, candidates.dimensions().back()};
  // XLA fuses where the processor can, and which of two nearly equal distances is smaller depends on it.
  JEDAX_CHOSEN(nearest)(search, fuses(), points.typed_data(), int64_t(cells->element_count()), cells->typed_data());
  return ffi::Error::Success();
}

// What a repertoire holds, and a batch for it: one replica of each.
struct Insertion {
  int64_t batch, cells, params, dimensions;
  const int32_t* cell;
  const float *fitness, *descriptor, *genotypes, *lows, *highs;
  int32_t when;
  float *stored_genotypes, *stored_fitness, *thresholds, *stored_descriptors;
  int32_t *counts, *improved_at;
  float *best_genotype, *best_fitness, *best_descriptor;
  int32_t *num_failed, *num_outside;
  bool* stored;
  int32_t* status;
  float* improvement;
};

template <int dimensions>
inline bool all_finite(const float* values, int64_t count) {
  bool finite = true;
  for (int64_t k = 0; k < (dimensions > 0 ? dimensions : count); ++k) finite &= std::isfinite(values[k]);
  return finite;
}

template <int dimensions>
inline bool any_outside(const Insertion& of, const float* values) {
  bool outside = false;
  for (int64_t k = 0; k < (dimensions > 0 ? dimensions : of.dimensions); ++k) {
    outside |= values[k] < of.lows[k] || values[k] > of.highs[k];
  }
  return outside;
}

// Solutions to look ahead, so that what is known of their cells is there when it is wanted.
constexpr int64_t kJudgedAhead = 16;

// Judges a batch; what is to be stored stays in `winner`, the cells that it belongs to in `touched`.
template <int dimensions>
int64_t judge(const Insertion& of, std::vector<int32_t>& winner_of, std::vector<int32_t>& touched) {
  const float* __restrict fitness_of = of.fitness;
  const float* __restrict held = of.stored_fitness;  // a hard repertoire's thresholds
  const int32_t* __restrict cell_of = of.cell;
  int32_t *__restrict counts = of.counts, *__restrict status = of.status, *__restrict winner = winner_of.data();
  float* __restrict improvement = of.improvement;
  const int64_t width = dimensions > 0 ? dimensions : of.dimensions;
  int64_t best = -1;
  int32_t num_failed = 0, num_outside = 0;
  float best_fitness = kLowest;
  for (int64_t i = 0; i < of.batch; ++i) {
    if (i + kJudgedAhead < of.batch) {
      const int32_t later = cell_of[i + kJudgedAhead];
      __builtin_prefetch(held + later);
      __builtin_prefetch(counts + later, 1);
      __builtin_prefetch(winner + later, 1);
    }
    const float fitness = fitness_of[i];
    const float* descriptor = of.descriptor + i * width;
    if (!(std::isfinite(fitness) && all_finite<dimensions>(descriptor, width))) {
      ++num_failed;
      status[i] = 0;
      improvement[i] = kLowest;
      continue;
    }
    num_outside += any_outside<dimensions>(of, descriptor);
    if (fitness > best_fitness) best_fitness = fitness, best = i;
    const int32_t cell = cell_of[i];
    ++counts[cell];
    const float threshold = held[cell];
    const bool filled = threshold > kLowest, accepted = fitness > threshold;
    improvement[i] = fitness - (filled ? threshold : 0.0f);
    status[i] = accepted ? (filled ? 1 : 2) : 0;
    if (!accepted) continue;
    const int32_t leader = winner[cell];
    if (leader < 0) touched.push_back(cell);
    if (leader < 0 || fitness > fitness_of[leader]) winner[cell] = int32_t(i);
  }
  *of.num_failed += num_failed;
  *of.num_outside += num_outside;
  return best;
}

// Solutions to look ahead, so that the first bytes of a genotype and of where it goes are there when they are wanted.
constexpr size_t kAhead = 4;
constexpr int64_t kFetched = 512 / sizeof(float), kLine = 64 / sizeof(float);

inline void fetch(const Insertion& of, int64_t cell, int64_t i) {
  __builtin_prefetch(of.stored_fitness + cell, 1);
  __builtin_prefetch(of.thresholds + cell, 1);
  __builtin_prefetch(of.improved_at + cell, 1);
  __builtin_prefetch(of.stored_descriptors + cell * of.dimensions, 1);
  for (int64_t k = 0; k < of.params && k < kFetched; k += kLine) {
    __builtin_prefetch(of.genotypes + i * of.params + k, 0);
    __builtin_prefetch(of.stored_genotypes + cell * of.params + k, 1);
  }
}

void insert(const Insertion& of, std::vector<int32_t>& winner, std::vector<int32_t>& touched) {
  if (winner.size() < size_t(of.cells)) winner.resize(size_t(of.cells), -1);
  touched.clear();
  std::memset(of.stored, 0, size_t(of.batch));
  const int64_t best = of.dimensions == 2 ? judge<2>(of, winner, touched) : judge<0>(of, winner, touched);
  for (size_t k = 0; k < touched.size(); ++k) {
    if (k + kAhead < touched.size()) fetch(of, touched[k + kAhead], winner[size_t(touched[k + kAhead])]);
    const int32_t cell = touched[k];
    const int64_t i = winner[size_t(cell)];
    winner[size_t(cell)] = -1;
    of.stored[i] = true;
    of.stored_fitness[cell] = of.thresholds[cell] = of.fitness[i];
    of.improved_at[cell] = of.when;
    std::memcpy(of.stored_genotypes + cell * of.params, of.genotypes + i * of.params,
                sizeof(float) * size_t(of.params));
    std::memcpy(of.stored_descriptors + cell * of.dimensions, of.descriptor + i * of.dimensions,
                sizeof(float) * size_t(of.dimensions));
  }
  if (best >= 0 && of.fitness[best] > *of.best_fitness) {
    *of.best_fitness = of.fitness[best];
    std::memcpy(of.best_genotype, of.genotypes + best * of.params, sizeof(float) * size_t(of.params));
    std::memcpy(of.best_descriptor, of.descriptor + best * of.dimensions, sizeof(float) * size_t(of.dimensions));
  }
}

// The repertoire's buffers are given as inputs and as outputs: XLA lets both be the same memory. Leading dimensions
// beyond the documented ones come from `jax.vmap`.
ffi::Error add(ffi::RemainingArgs inputs, ffi::Span<const float> lows, ffi::Span<const float> highs,
               ffi::RemainingRets outputs) {
  const auto floats = [&](size_t i) { return inputs.get<Floats>(i)->typed_data(); };
  const auto ints = [&](size_t i) { return inputs.get<Ints>(i)->typed_data(); };
  const auto new_floats = [&](size_t i) { return (*outputs.get<Floats>(i))->typed_data(); };
  const auto new_ints = [&](size_t i) { return (*outputs.get<Ints>(i))->typed_data(); };
  const auto batch_shape = inputs.get<Floats>(3)->dimensions();
  const auto own_shape = inputs.get<Floats>(5)->dimensions();
  Insertion of{};
  of.batch = batch_shape[batch_shape.size() - 2];
  of.params = batch_shape.back();
  of.cells = own_shape[own_shape.size() - 2];
  of.dimensions = int64_t(lows.size());
  of.lows = lows.begin();
  of.highs = highs.begin();
  const int64_t groups = int64_t(inputs.get<Ints>(4)->element_count());
  // Numbers of each input in a group
  const int64_t cells = of.cells, batch = of.batch;
  const int64_t sizes[] = {batch, batch, batch * of.dimensions, batch * of.params, 1, cells * of.params, cells, cells,
                           cells * of.dimensions, cells, cells, of.params, 1, of.dimensions, 1, 1};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
    if (int64_t(inputs.get<ffi::AnyBuffer>(i)->element_count()) != groups * sizes[i]) {
      return ffi::Error::InvalidArgument("shapes that do not fit each other");
    }
  }
  // Kept from call to call: filling it anew would take as long as the rest where cells are many.
  static thread_local std::vector<int32_t> winner, touched;
  for (int64_t g = 0; g < groups; ++g) {
    of.cell = ints(0) + g * of.batch;
    of.fitness = floats(1) + g * of.batch;
    of.descriptor = floats(2) + g * of.batch * of.dimensions;
    of.genotypes = floats(3) + g * of.batch * of.params;
    of.when = ints(4)[g];
    of.stored_genotypes = new_floats(0) + g * of.cells * of.params;
    of.stored_fitness = new_floats(1) + g * of.cells;
    of.thresholds = new_floats(2) + g * of.cells;
    of.stored_descriptors = new_floats(3) + g * of.cells * of.dimensions;
    of.counts = new_ints(4) + g * of.cells;
    of.improved_at = new_ints(5) + g * of.cells;
    of.best_genotype = new_floats(6) + g * of.params;
    of.best_fitness = new_floats(7) + g;
    of.best_descriptor = new_floats(8) + g * of.dimensions;
    of.num_failed = new_ints(9) + g;
    of.num_outside = new_ints(10) + g;
    of.stored = (*outputs.get<Bools>(11))->typed_data() + g * of.batch;
    of.status = new_ints(12) + g * of.batch;
    of.improvement = new_floats(13) + g * of.batch;
    insert(of, winner, touched);
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace jedax

JEDAX_HANDLER(jedax_repertoire_nearest, jedax::assign,
              ffi::Ffi::Bind()
                  .Arg<jedax::Floats>()
                  .Arg<jedax::Floats>()
                  .Arg<jedax::Ints>()
                  .Attr<ffi::Span<const int32_t>>("shape")
                  .Ret<jedax::Ints>())

JEDAX_HANDLER(jedax_repertoire_add, jedax::add,
              ffi::Ffi::Bind()
                  .RemainingArgs()
                  .Attr<ffi::Span<const float>>("lows")
                  .Attr<ffi::Span<const float>>("highs")
                  .RemainingRets())
