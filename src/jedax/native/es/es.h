// Samples and updates of LM-MA-ES, each thread with its own members or its own parameters.
#pragma once

#include <stdint.h>

#include "core/isa.h"
#include "core/queue.h"

namespace jedax {
namespace es {

// Generations of several strategies. m is the number of directions, n that of parameters.
struct Samples {
  int64_t strategies, population, m, n;
  const uint32_t* keys;     // (strategies, 2)
  const float* mean;        // (strategies, n)
  const float* sigma;       // (strategies,)
  const float* directions;  // (strategies, m, n)
  const float* gram;        // (strategies, m, m), products of the directions
  const float* rates;       // (strategies, m), 0 for directions that are not used
  float* genotypes;         // (strategies, population, n)
};

// Standard normals, `count` of each key.
struct Normals {
  int64_t count;
  const uint32_t* keys;  // (groups, 2)
  float* numbers;        // (groups, count)
};

// Sums of weighted differences from the means.
struct Sums {
  int64_t population, n;
  const float* weights;    // (strategies, population); members of weight 0 are left out
  const float* genotypes;  // (strategies, population, n)
  const float* mean;       // (strategies, n)
  float* sums;             // (strategies, n)
};

constexpr int64_t kMembers = 16;     // that a thread draws together
constexpr int64_t kChunk = 2048;     // parameters that stay in a cache

inline int64_t groups(int64_t count, int64_t size) { return (count + size - 1) / size; }

// Items of the queue: groups of members, or chunks of parameters, of all strategies.
template <Isa>
void draw(const Samples& work, Queue& queue);
template <Isa>
void draw_normals(const Normals& work, Queue& queue);
template <Isa>
void add_up(const Sums& work, Queue& queue);

}  // namespace es
}  // namespace jedax
