// Policies, each with weights of its own: multilayer perceptrons that decide for one robot at a time.
#pragma once

#include "control/control.h"
#include "control/space.h"

namespace jedax {
namespace control {
namespace {

// Sums that are kept in registers at once.
constexpr int kSums = kWidth == 16 ? 16 : 8;

inline int whole_vectors(int count) { return (count + kWidth - 1) / kWidth; }

// Weights of a policy laid out by `lay_out`.
inline int64_t laid_out_weights(const Episode& e) {
  int64_t count = 0;
  for (int l = 0; l + 1 < e.num_layers; ++l) {
    count += int64_t(whole_vectors(e.layers[l + 1])) * kWidth * (e.layers[l] + 1);
  }
  return count;
}

using Half = uint16_t;  // a bfloat16: the upper half of a float32

JEDAX_INLINE void round_to(float value, float* to) { *to = value; }
JEDAX_INLINE void round_to(float value, Half* to) {  // to the nearest, ties to even
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  *to = Half((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

JEDAX_INLINE Vector load_weights(const float* p) { return load(p); }
JEDAX_INLINE Vector load_weights(const Half* p) { return load_halves(p); }

// Copies a genotype so that a decision reads it from beginning to end: blocks of outputs, each with its biases and then
// its weights, input by input, filled up with zeros to whole vectors.
template <class Weight>
void lay_out(const Episode& e, const float* genotype, Weight* to) {
  for (int l = 0; l + 1 < e.num_layers; ++l) {
    const int inputs = e.layers[l], outputs = e.layers[l + 1], vectors = whole_vectors(outputs);
    const float* bias = genotype + int64_t(inputs) * outputs;
    for (int block = 0; block < vectors; block += kSums) {
      const int first = block * kWidth, wide = (vectors - block < kSums ? vectors - block : kSums) * kWidth;
      for (int row = -1; row < inputs; ++row, to += wide) {
        const float* from = row < 0 ? bias : genotype + int64_t(row) * outputs;
        for (int j = 0; j < wide; ++j) round_to(first + j < outputs ? from[first + j] : 0.0f, to + j);
      }
    }
    genotype = bias + outputs;
  }
}

template <int N, class Weight>
JEDAX_INLINE const Weight* add_up(const Weight* weights, const float* in, int inputs, Vector* sums) {
  Vector s[N];
  for (int v = 0; v < N; ++v) s[v] = load_weights(weights + v * kWidth);
  weights += N * kWidth;
  for (int i = 0; i < inputs; ++i, weights += N * kWidth) {
    const Vector x = splat(in[i]);
    for (int v = 0; v < N; ++v) s[v] = jedax::fma(x, load_weights(weights + v * kWidth), s[v]);
  }
  for (int v = 0; v < N; ++v) sums[v] = s[v];
  return weights;
}

// One decision. `values` holds the observation and has room for twice the widest layer; returns the outputs, in [-1, 1].
template <class Weight>
const float* decide(const Episode& e, const Weight* weights, float* values, float* spare) {
  for (int l = 0; l + 1 < e.num_layers; ++l) {
    const int inputs = e.layers[l], vectors = whole_vectors(e.layers[l + 1]);
    Vector* sums = reinterpret_cast<Vector*>(spare);
    int block = 0;
    for (; block + kSums <= vectors; block += kSums) weights = add_up<kSums>(weights, values, inputs, sums + block);
    const int left = vectors - block;
    switch (left) {
#define JEDAX_LEFT(N) \
  case N:             \
    if (N < kSums) weights = add_up<N>(weights, values, inputs, sums + block); \
    break;
      JEDAX_LEFT(1) JEDAX_LEFT(2) JEDAX_LEFT(3) JEDAX_LEFT(4) JEDAX_LEFT(5) JEDAX_LEFT(6) JEDAX_LEFT(7) JEDAX_LEFT(8)
      JEDAX_LEFT(9) JEDAX_LEFT(10) JEDAX_LEFT(11) JEDAX_LEFT(12) JEDAX_LEFT(13) JEDAX_LEFT(14) JEDAX_LEFT(15)
#undef JEDAX_LEFT
      default:
        break;
    }
    const bool last = l + 2 == e.num_layers;
    activate_all(last ? int(kTanh) : e.activation, vectors, packs<1>(spare));
    float* swap = values;
    values = spare;
    spare = swap;
  }
  return values;
}

}  // namespace
}  // namespace control
}  // namespace jedax
