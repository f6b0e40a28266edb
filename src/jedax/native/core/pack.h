// Pack<K>: K vectors that take the same steps, one robot in each of the K * kWidth lanes.
//
// Their dependency chains do not touch, so that the processor has work while one of them waits for a result.
#pragma once

#include "core/simd.h"

namespace jedax {
namespace {

template <int K>
struct Pack {
  Vector v[K];
  JEDAX_INLINE Pack() {}
  JEDAX_INLINE Pack(float a) { for (int k = 0; k < K; ++k) v[k] = splat(a); }
};

template <int K>
struct Masks {
  Mask v[K];
};

#define JEDAX_EACH(RESULT, EXPRESSION)           \
  RESULT r;                                      \
  for (int k = 0; k < K; ++k) r.v[k] = EXPRESSION; \
  return r;
#define JEDAX_PACK template <int K> JEDAX_INLINE

JEDAX_PACK Pack<K> operator+(Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, a.v[k] + b.v[k]) }
JEDAX_PACK Pack<K> operator-(Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, a.v[k] - b.v[k]) }
JEDAX_PACK Pack<K> operator*(Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, a.v[k] * b.v[k]) }
JEDAX_PACK Pack<K> operator/(Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, a.v[k] / b.v[k]) }
JEDAX_PACK Pack<K> operator+(Pack<K> a, float b) { return a + Pack<K>(b); }
JEDAX_PACK Pack<K> operator-(Pack<K> a, float b) { return a - Pack<K>(b); }
JEDAX_PACK Pack<K> operator*(Pack<K> a, float b) { return a * Pack<K>(b); }
JEDAX_PACK Pack<K> operator-(float a, Pack<K> b) { return Pack<K>(a) - b; }
JEDAX_PACK Pack<K> operator/(float a, Pack<K> b) { return Pack<K>(a) / b; }
// a * b + c and c - a * b, rounded once where the processor can
JEDAX_PACK Pack<K> fma(Pack<K> a, Pack<K> b, Pack<K> c) { JEDAX_EACH(Pack<K>, fma(a.v[k], b.v[k], c.v[k])) }
JEDAX_PACK Pack<K> fnma(Pack<K> a, Pack<K> b, Pack<K> c) { JEDAX_EACH(Pack<K>, fnma(a.v[k], b.v[k], c.v[k])) }
// The second where either is NaN
JEDAX_PACK Pack<K> min(Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, min(a.v[k], b.v[k])) }
JEDAX_PACK Pack<K> max(Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, max(a.v[k], b.v[k])) }
JEDAX_PACK Pack<K> abs(Pack<K> a) { JEDAX_EACH(Pack<K>, abs(a.v[k])) }
JEDAX_PACK Pack<K> sqrt(Pack<K> a) { JEDAX_EACH(Pack<K>, sqrt(a.v[k])) }
JEDAX_PACK Pack<K> round(Pack<K> a) { JEDAX_EACH(Pack<K>, round(a.v[k])) }
JEDAX_PACK Pack<K> scale(Pack<K> a, Pack<K> n) { JEDAX_EACH(Pack<K>, scale(a.v[k], n.v[k])) }
// False where either is NaN
JEDAX_PACK Masks<K> operator<(Pack<K> a, Pack<K> b) { JEDAX_EACH(Masks<K>, less(a.v[k], b.v[k])) }
JEDAX_PACK Masks<K> operator<=(Pack<K> a, Pack<K> b) { JEDAX_EACH(Masks<K>, less_equal(a.v[k], b.v[k])) }
JEDAX_PACK Masks<K> operator&(Masks<K> a, Masks<K> b) { JEDAX_EACH(Masks<K>, Mask(a.v[k] & b.v[k])) }
JEDAX_PACK Pack<K> select(Masks<K> m, Pack<K> a, Pack<K> b) { JEDAX_EACH(Pack<K>, select(m.v[k], a.v[k], b.v[k])) }

JEDAX_PACK Pack<K> min_within(Pack<K> a, Pack<K> off, Pack<K> reach, Pack<K> b) {
  JEDAX_EACH(Pack<K>, min_within(a.v[k], off.v[k], reach.v[k], b.v[k]))
}

JEDAX_PACK unsigned bits(Masks<K> m) {
  unsigned all = 0;
  for (int k = 0; k < K; ++k) all |= bits(m.v[k]) << (k * kWidth);
  return all;
}

JEDAX_PACK Pack<K> load_pack(const float* p) { JEDAX_EACH(Pack<K>, load(p + k * kWidth)) }
JEDAX_PACK void store(float* p, Pack<K> a) {
  for (int k = 0; k < K; ++k) store(p + k * kWidth, a.v[k]);
}

#undef JEDAX_EACH
#undef JEDAX_PACK

}  // namespace
}  // namespace jedax
