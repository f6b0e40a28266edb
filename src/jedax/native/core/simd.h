// Vectors of float32 of one instruction set, chosen by the macros the compiler defines for this translation unit.
//
// No function of the standard library is used here or in a kernel: an inline function compiled for AVX-512 could replace
// its namesake in the whole program.
#pragma once

#include <stdint.h>

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

namespace jedax {
namespace {

#define JEDAX_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)

constexpr int kWidth = 16;
using Vector = __m512;
using Mask = __mmask16;
JEDAX_INLINE Vector splat(float a) { return _mm512_set1_ps(a); }
JEDAX_INLINE Vector load(const float* p) { return _mm512_load_ps(p); }
JEDAX_INLINE void store(float* p, Vector a) { _mm512_store_ps(p, a); }
JEDAX_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
JEDAX_INLINE Vector fnma(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
JEDAX_INLINE Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
JEDAX_INLINE Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
JEDAX_INLINE Vector abs(Vector a) { return _mm512_abs_ps(a); }
JEDAX_INLINE Vector sqrt(Vector a) { return _mm512_sqrt_ps(a); }
JEDAX_INLINE Vector round(Vector a) { return _mm512_roundscale_ps(a, 8); }
// a * 2^n for a whole number n
JEDAX_INLINE Vector scale(Vector a, Vector n) { return _mm512_scalef_ps(a, n); }
JEDAX_INLINE Mask less(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
JEDAX_INLINE Mask less_equal(Vector a, Vector b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
JEDAX_INLINE Vector select(Mask m, Vector a, Vector b) { return _mm512_mask_blend_ps(m, b, a); }
JEDAX_INLINE Vector min_within(Vector a, Vector off, Vector reach, Vector b) {
  const __m512i low = _mm512_mask_min_epu32((__m512i)b, less_equal(abs(off), reach), (__m512i)a, (__m512i)b);
  return (Vector)low;  // as whole numbers without a sign, negative ones are the largest
}
JEDAX_INLINE unsigned bits(Mask m) { return m; }
// Numbers of which only the upper halves are stored (bfloat16)
JEDAX_INLINE Vector load_halves(const uint16_t* p) {
  return (Vector)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(p))), 16);
}

#else

#if defined(__AVX2__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
typedef float Vector __attribute__((vector_size(4 * kWidth)));
typedef int Mask __attribute__((vector_size(4 * kWidth)));
JEDAX_INLINE Vector splat(float a) { return a - Vector{}; }
JEDAX_INLINE Vector load(const float* p) { return *reinterpret_cast<const Vector*>(p); }
JEDAX_INLINE void store(float* p, Vector a) { *reinterpret_cast<Vector*>(p) = a; }
JEDAX_INLINE Mask less(Vector a, Vector b) { return a < b; }
JEDAX_INLINE Mask less_equal(Vector a, Vector b) { return a <= b; }
JEDAX_INLINE Vector abs(Vector a) { return (Vector)((Mask)a & 0x7fffffff); }
#if defined(__AVX2__)
JEDAX_INLINE Vector load_halves(const uint16_t* p) {
  return (Vector)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p))), 16);
}
#else
JEDAX_INLINE Vector load_halves(const uint16_t* p) {
  const Mask words = {p[0], p[1], p[2], p[3]};
  return (Vector)(words << 16);
}
#endif
JEDAX_INLINE Vector scale(Vector a, Vector n) {
  return a * (Vector)((__builtin_convertvector(n, Mask) + 127) << 23);
}
#if defined(__AVX2__)
JEDAX_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
JEDAX_INLINE Vector fnma(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }
JEDAX_INLINE Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
JEDAX_INLINE Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
JEDAX_INLINE Vector sqrt(Vector a) { return _mm256_sqrt_ps(a); }
JEDAX_INLINE Vector round(Vector a) { return _mm256_round_ps(a, 8); }
JEDAX_INLINE Vector select(Mask m, Vector a, Vector b) { return _mm256_blendv_ps(b, a, (Vector)m); }
JEDAX_INLINE unsigned bits(Mask m) { return _mm256_movemask_ps((Vector)m); }
#else
JEDAX_INLINE Vector select(Mask m, Vector a, Vector b) { return (Vector)((m & (Mask)a) | (~m & (Mask)b)); }
// Adding and taking away 1.5 * 2^23 leaves the nearest whole number, for |a| < 2^22.
JEDAX_INLINE Vector round(Vector a) { return (a + 12582912.0f) - 12582912.0f; }
#if defined(__SSE2__)
JEDAX_INLINE Vector fma(Vector a, Vector b, Vector c) { return a * b + c; }
JEDAX_INLINE Vector fnma(Vector a, Vector b, Vector c) { return c - a * b; }
JEDAX_INLINE Vector min(Vector a, Vector b) { return _mm_min_ps(a, b); }
JEDAX_INLINE Vector max(Vector a, Vector b) { return _mm_max_ps(a, b); }
JEDAX_INLINE Vector sqrt(Vector a) { return _mm_sqrt_ps(a); }
JEDAX_INLINE unsigned bits(Mask m) { return _mm_movemask_ps((Vector)m); }
#else
#if defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF)
JEDAX_INLINE Vector fma(Vector a, Vector b, Vector c) {
  for (int i = 0; i < kWidth; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
#else
JEDAX_INLINE Vector fma(Vector a, Vector b, Vector c) { return a * b + c; }
#endif
JEDAX_INLINE Vector fnma(Vector a, Vector b, Vector c) { return fma(-a, b, c); }
JEDAX_INLINE Vector min(Vector a, Vector b) { return select(a < b, a, b); }
JEDAX_INLINE Vector max(Vector a, Vector b) { return select(a > b, a, b); }
JEDAX_INLINE Vector sqrt(Vector a) {
  for (int i = 0; i < kWidth; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
JEDAX_INLINE unsigned bits(Mask m) {
  unsigned all = 0;
  for (int i = 0; i < kWidth; ++i) all |= (m[i] & 1u) << i;
  return all;
}
#endif
#endif
// The smaller of a and b where a >= 0 (but not -0) and |off| <= reach, else b; b >= 0
JEDAX_INLINE Vector min_within(Vector a, Vector off, Vector reach, Vector b) {
#if defined(__AVX2__)
  const Mask hit = less_equal(abs(off), reach);
  return (Vector)_mm256_min_epu32((__m256i)((Mask)a | ~hit), (__m256i)b);
#else
  return select(less_equal(abs(off), reach) & less_equal(Vector{}, a), min(a, b), b);
#endif
}
#endif

}  // namespace
}  // namespace jedax
