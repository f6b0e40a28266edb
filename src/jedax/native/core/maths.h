// Functions of packs: tanh, sine, cosine, activations and layers of a network.
#pragma once

#include "core/activations.h"
#include "core/pack.h"

namespace jedax {
namespace {

#define JEDAX_PACK template <int K> JEDAX_INLINE

// x P(x^2) / Q(x^2), a minimax fit of the relative error (2.1e-8) up to 9.02, from where tanh rounds to 1.
JEDAX_PACK Pack<K> tanh(Pack<K> x) {
  x = min(Pack<K>(9.02f), max(Pack<K>(-9.02f), x));
  const Pack<K> u = x * x;
  Pack<K> p = fma(Pack<K>(1.33191361e-8f), u, Pack<K>(2.05835304e-5f));
  p = fma(p, u, Pack<K>(3.49403768e-3f));
  p = fma(p, u, Pack<K>(0.133797206f));
  p = fma(p, u, Pack<K>(1.0f));
  Pack<K> q = fma(Pack<K>(7.76204651e-7f), u, Pack<K>(3.28309785e-4f));
  q = fma(q, u, Pack<K>(2.58710852e-2f));
  q = fma(q, u, Pack<K>(0.467130359f));
  q = fma(q, u, Pack<K>(1.0f));
  return min(Pack<K>(1.0f), max(Pack<K>(-1.0f), x * p / q));
}

// e^x for x <= 0
JEDAX_PACK Pack<K> exp_negative(Pack<K> x) {
  x = max(Pack<K>(-87.0f), x);
  const Pack<K> n = round(x * 1.44269504f);
  const Pack<K> r = fnma(n, Pack<K>(-2.12194440e-4f), fnma(n, Pack<K>(0.693359375f), x));
  Pack<K> p = fma(Pack<K>(1.0f / 5040), r, Pack<K>(1.0f / 720));
  p = fma(p, r, Pack<K>(1.0f / 120));
  p = fma(p, r, Pack<K>(1.0f / 24));
  p = fma(p, r, Pack<K>(1.0f / 6));
  p = fma(p, r, Pack<K>(0.5f));
  p = fma(p, r, Pack<K>(1.0f));
  p = fma(p, r, Pack<K>(1.0f));
  return scale(p, n);
}

JEDAX_PACK Pack<K> sigmoid(Pack<K> x) {
  const Pack<K> e = exp_negative(0.0f - abs(x));
  const Pack<K> r = 1.0f / (e + 1.0f);
  return select(x < Pack<K>(0.0f), e * r, r);
}

// Any activation but relu
JEDAX_PACK Pack<K> activate(int activation, Pack<K> x) {
  switch (activation) {
    case kTanh:
      return tanh(x);
    case kSigmoid:
      return sigmoid(x);
    case kElu: {
      const Pack<K> t = tanh(x * 0.5f);  // e^x - 1 = 2 t / (1 - t), without cancellation
      return select(Pack<K>(0.0f) < x, x, t * 2.0f / (1.0f - t));
    }
    case kGelu:  // (1 + tanh(z)) / 2 is the sigmoid of 2 z
      return x * sigmoid(fma(x * x * x, Pack<K>(0.044715f), x) * 1.59576912f);
    default:  // kSilu
      return x * sigmoid(x);
  }
}

JEDAX_PACK void activate_all(int activation, int count, Pack<K>* values) {
  if (activation == kRelu) {  // the default; without a jump for each value
    for (int j = 0; j < count; ++j) values[j] = max(Pack<K>(0.0f), values[j]);
  } else {
    for (int j = 0; j < count; ++j) values[j] = activate(activation, values[j]);
  }
}

template <int kTerms, int K>
JEDAX_INLINE void taylor_sinc_cos(Pack<K> angle, Pack<K>& sinc, Pack<K>& cos) {
  constexpr float factorials[] = {1.0f, 2.0f, 24.0f, 720.0f, 40320.0f, 3628800.0f, 479001600.0f, 87178291200.0f};
  const Pack<K> squared = angle * angle;
  sinc = Pack<K>(1.0f / (factorials[kTerms - 1] * (2 * kTerms - 1)));
  cos = Pack<K>(1.0f / factorials[kTerms - 1]);
  for (int k = kTerms - 2; k >= 0; --k) {
    sinc = fnma(squared, sinc, Pack<K>(1.0f / (factorials[k] * (2 * k + 1))));
    cos = fnma(squared, cos, Pack<K>(1.0f / factorials[k]));
  }
}

// sin(angle) / angle and cos(angle) for |angle| <= largest
JEDAX_PACK void sinc_cos(float largest, Pack<K> angle, Pack<K>& sinc, Pack<K>& cos) {
  if (largest <= 0.9f) return taylor_sinc_cos<6>(angle, sinc, cos);
  if (largest <= 1.5f) return taylor_sinc_cos<8>(angle, sinc, cos);
  alignas(64) float in[K * kWidth], sines[K * kWidth], cosines[K * kWidth];
  store(in, angle);
  for (int i = 0; i < K * kWidth; ++i) {
    sines[i] = in[i] == 0 ? 1.0f : __builtin_sinf(in[i]) / in[i];
    cosines[i] = __builtin_cosf(in[i]);
  }
  sinc = load_pack<K>(sines);
  cos = load_pack<K>(cosines);
}

// One layer of a network. `weights`: for each output its bias, then its weights, each a pack; sums are in this order.
JEDAX_PACK void layer(const float* weights, int inputs, int outputs, const Pack<K>* in, Pack<K>* sums) {
  constexpr int lanes = K * kWidth, block = 4;
  const int row = (inputs + 1) * lanes;
  int j = 0;
  for (; j + block <= outputs; j += block, weights += block * row) {
    Pack<K> sum[block];
    for (int b = 0; b < block; ++b) sum[b] = load_pack<K>(weights + b * row);
    for (int i = 0; i < inputs; ++i) {
      for (int b = 0; b < block; ++b) sum[b] = fma(in[i], load_pack<K>(weights + b * row + (i + 1) * lanes), sum[b]);
    }
    for (int b = 0; b < block; ++b) sums[j + b] = sum[b];
  }
  for (; j < outputs; ++j, weights += row) {
    Pack<K> sum = load_pack<K>(weights);
    for (int i = 0; i < inputs; ++i) sum = fma(in[i], load_pack<K>(weights + (i + 1) * lanes), sum);
    sums[j] = sum;
  }
}

#undef JEDAX_PACK

}  // namespace
}  // namespace jedax
