#include "es/es.h"

#include "core/lanes.h"
#include "core/simd.h"
#include "random/threefry.h"

namespace jedax {
namespace es {
namespace {

JEDAX_INLINE Vector read(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
JEDAX_INLINE void write(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }

inline float as_float(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t as_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

// a * b + c, in one instruction where there is one
inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// The polynomial in x with these coefficients, that of the highest power first
template <class... Float>
inline float polynomial(float x, float sum, Float... rest) {
  ((sum = multiply_add(sum, x, rest)), ...);
  return sum;
}

// The logarithm of a number in (0, 1] (Cephes, logf).
inline float log(float t) {
  const int32_t exponent = int32_t(as_bits(t) - 0x3f3504f3u) >> 23;
  const float x = as_float(as_bits(t) - (uint32_t(exponent) << 23)) - 1.0f, z = x * x;
  const float p = polynomial(x, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                             -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  const float e = float(exponent);
  return multiply_add(0.693359375f, e, x + multiply_add(-2.12194440e-4f, e, multiply_add(-0.5f, z, x * p * z)));
}

// The uniform number in (-1, 1) that `jax.random.normal` makes of random bits.
inline float uniform(uint32_t bits) {
  const float least = -0.99999994f;
  const float spread = as_float((bits >> 9) | 0x3f800000u) - 1.0f;
  const float moved = spread * 2.0f + least;
  return moved > least ? moved : least;
}

// Whether |uniform(bits)| is above 0.996, where erfinv may need its other polynomial.
inline bool is_tail(uint32_t bits) { return (bits >> 9) - 16384u > (1u << 23) - 2 * 16384u; }

// The standard normal that `jax.random.normal` makes of random bits: sqrt(2) erfinv(u) (M. Giles, Approximating the erfinv
// function, 2010).
template <bool kInTail>
inline float normal(uint32_t bits) {
  const float u = uniform(bits), w = -log((1.0f - u) * (1.0f + u));
  float p = polynomial(w - 2.5f, 2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                       -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f);
  if (kInTail && w >= 5.0f) {
    p = polynomial(__builtin_sqrtf(w) - 3.0f, -0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f,
                   0.00573950773f, -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f);
  }
  return 1.41421356f * (p * u);
}

// Numbers in the tails are computed again, with the other polynomial; few blocks have any.
void normals(const uint32_t* bits, int64_t count, float* to) {
  constexpr int64_t kBlock = 64;
  for (int64_t i = 0; i < count; ++i) to[i] = normal<false>(bits[i]);
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    uint32_t tails = 0;
    for (int64_t i = begin; i < end; ++i) tails |= is_tail(bits[i]);
    if (!tails) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (is_tail(bits[i])) to[i] = normal<true>(bits[i]);
    }
  }
}

constexpr int kRows = 4;  // of a block of products, in directions and in members

// sums[j][b] += the products of direction j and member b over `count` parameters, whole vectors
template <int kDirections>
JEDAX_INLINE void multiply(const float* const* m, const float* const* z, int64_t count, Vector* const* sums) {
  Vector s[kDirections][kRows];
  for (int j = 0; j < kDirections; ++j) {
    for (int b = 0; b < kRows; ++b) s[j][b] = sums[j][b];
  }
  for (int64_t i = 0; i + kWidth <= count; i += kWidth) {
    Vector of_z[kRows];
    for (int b = 0; b < kRows; ++b) of_z[b] = read(z[b] + i);
    for (int j = 0; j < kDirections; ++j) {
      const Vector of_m = read(m[j] + i);
      for (int b = 0; b < kRows; ++b) s[j][b] = fma(of_m, of_z[b], s[j][b]);
    }
  }
  for (int j = 0; j < kDirections; ++j) {
    for (int b = 0; b < kRows; ++b) sums[j][b] = s[j][b];
  }
}

// The directions that change a sample. A direction changes it by at most the share c |m|^2 of its length; shares below
// the precision of a float are left out. Later directions change more slowly and have lower rates, so of the 37 of a
// large policy some ten are left.
inline int64_t count_used(const float* rates, const float* gram, int64_t m) {
  constexpr float kPrecision = 5.9604645e-8f;  // 2^-24
  int64_t used = m;
  while (used > 0 && rates[used - 1] * gram[(used - 1) * m + used - 1] < kPrecision) --used;
  return used;
}

// Members of one strategy that are drawn together.
struct Group {
  const Samples& w;
  int64_t strategy, first, members, used;  // directions from `used` on are left out
  float *z, *products, *mixture;           // (kMembers, n), (m, kMembers), (m, kMembers)
  Vector* sums;                            // (m, kMembers)
  float of_z;
};

// Draws z, and multiplies it with the directions.
void draw_members(Group& g) {
  const Samples& w = g.w;
  const int64_t n = w.n, whole = n - n % kWidth;
  const float* directions = w.directions + g.strategy * w.m * n;
  uint32_t keys[kMembers][2];
  for (int64_t b = 0; b < g.members; ++b) {
    const uint32_t* key = w.keys + 2 * g.strategy;
    keys[b][0] = 0, keys[b][1] = uint32_t(g.first + b);
    threefry(key[0], key[1], keys[b][0], keys[b][1]);
  }
  for (int64_t k = 0; k < g.used * kMembers; ++k) g.sums[k] = splat(0), g.products[k] = 0;
  uint32_t bits[kChunk];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = n - begin < kChunk ? n - begin : kChunk;
    for (int64_t b = 0; b < g.members; ++b) {
      fill<JEDAX_ISA>(keys[b][0], keys[b][1], uint64_t(begin), count, bits);
      normals(bits, count, g.z + b * n + begin);
    }
    for (int64_t j = 0; j < g.used; j += kRows) {
      const int rows = int(g.used - j < kRows ? g.used - j : kRows);
      const float* m[kRows];
      for (int k = 0; k < rows; ++k) m[k] = directions + (j + k) * n + begin;
      for (int64_t b = 0; b < g.members; b += kRows) {
        const float* z[kRows];  // beyond the last member any row will do
        Vector* sums[kRows];
        for (int k = 0; k < kRows; ++k) z[k] = g.z + (b + k < g.members ? b + k : b) * n + begin;
        for (int k = 0; k < rows; ++k) sums[k] = g.sums + (j + k) * kMembers + b;
        if (rows == 4) multiply<4>(m, z, count, sums);
        else if (rows == 3) multiply<3>(m, z, count, sums);
        else if (rows == 2) multiply<2>(m, z, count, sums);
        else multiply<1>(m, z, count, sums);
      }
    }
  }
  for (int64_t j = 0; j < g.used; ++j) {
    for (int64_t b = 0; b < g.members; ++b) {
      float sum = 0;
      for (int k = 0; k < kWidth; ++k) sum += g.sums[j * kMembers + b][k];
      for (int64_t i = whole; i < n; ++i) sum += directions[j * n + i] * g.z[b * n + i];
      g.products[j * kMembers + b] = sum;
    }
  }
}

// d <- (1 - c) d + c m (m' d), direction by direction, as coefficients of z and of the directions.
void mix(Group& g) {
  const Samples& w = g.w;
  const float *rates = w.rates + g.strategy * w.m, *gram = w.gram + g.strategy * w.m * w.m;
  for (int64_t b = 0; b < g.members; ++b) {
    g.of_z = 1;
    for (int64_t j = 0; j < g.used; ++j) {
      const float c = rates[j];
      float along = g.of_z * g.products[j * kMembers + b];
      for (int64_t k = 0; k < j; ++k) along += gram[j * w.m + k] * g.mixture[k * kMembers + b];
      for (int64_t k = 0; k < j; ++k) g.mixture[k * kMembers + b] *= 1 - c;
      g.mixture[j * kMembers + b] = c * along;
      g.of_z *= 1 - c;
    }
    for (int64_t j = g.used; j < w.m; ++j) {  // of directions that are left out only d <- (1 - c) d remains
      for (int64_t k = 0; k < g.used; ++k) g.mixture[k * kMembers + b] *= 1 - rates[j];
      g.of_z *= 1 - rates[j];
    }
  }
}

// mean + sigma (of_z z + sum of mixture_j m_j) for up to kRows members and `count` parameters from `begin` on
void place_block(const Group& g, int64_t b, int64_t begin, int64_t count) {
  constexpr int kVectors = 4;
  const Samples& w = g.w;
  const int64_t n = w.n;
  const int rows = int(g.members - b < kRows ? g.members - b : kRows);
  const float *directions = w.directions + g.strategy * w.m * n + begin, *mean = w.mean + g.strategy * n + begin;
  const float sigma = w.sigma[g.strategy];
  const float* z[kRows];
  float* to[kRows];
  for (int k = 0; k < kRows; ++k) {
    z[k] = g.z + (k < rows ? b + k : b) * n + begin;
    to[k] = w.genotypes + (g.strategy * w.population + g.first + b + k) * n + begin;
  }
  int64_t i = 0;
  for (; i + kVectors * kWidth <= count; i += kVectors * kWidth) {
    Vector d[kRows][kVectors];
    for (int k = 0; k < kRows; ++k) {
      for (int v = 0; v < kVectors; ++v) d[k][v] = read(z[k] + i + v * kWidth) * splat(g.of_z);
    }
    for (int64_t j = 0; j < g.used; ++j) {
      const float* much = g.mixture + j * kMembers + b;
      Vector m[kVectors];
      for (int v = 0; v < kVectors; ++v) m[v] = read(directions + j * n + i + v * kWidth);
      for (int k = 0; k < kRows; ++k) {
        for (int v = 0; v < kVectors; ++v) d[k][v] = fma(m[v], splat(much[k]), d[k][v]);
      }
    }
    for (int k = 0; k < rows; ++k) {
      for (int v = 0; v < kVectors; ++v) {
        write(to[k] + i + v * kWidth, fma(d[k][v], splat(sigma), read(mean + i + v * kWidth)));
      }
    }
  }
  for (; i < count; ++i) {
    for (int k = 0; k < rows; ++k) {
      float d = z[k][i] * g.of_z;
      for (int64_t j = 0; j < g.used; ++j) d += directions[j * n + i] * g.mixture[j * kMembers + b + k];
      to[k][i] = d * sigma + mean[i];
    }
  }
}

void place(const Group& g) {
  for (int64_t begin = 0; begin < g.w.n; begin += kChunk) {
    const int64_t count = g.w.n - begin < kChunk ? g.w.n - begin : kChunk;
    for (int64_t b = 0; b < g.members; b += kRows) place_block(g, b, begin, count);
  }
}

}  // namespace

template <>
void draw<JEDAX_ISA>(const Samples& w, Queue& queue) {
  const FlushSmallNumbers flush;
  const int64_t rows = kMembers * w.m;
  Buffer buffer(kMembers * w.n + 2 * rows + rows * kWidth + 64);
  if (!buffer.ok()) return;
  Vector* sums = reinterpret_cast<Vector*>(buffer.take(rows * kWidth));
  float *products = buffer.take(rows), *mixture = buffer.take(rows), *z = buffer.take(kMembers * w.n);
  const int64_t each = groups(w.population, kMembers);
  for (int64_t item; take(queue, 1, item);) {
    const int64_t strategy = item / each, first = item % each * kMembers;
    const int64_t members = w.population - first < kMembers ? w.population - first : kMembers;
    const int64_t used = count_used(w.rates + strategy * w.m, w.gram + strategy * w.m * w.m, w.m);
    Group g{w, strategy, first, members, used, z, products, mixture, sums, 1};
    draw_members(g);
    mix(g);
    place(g);
  }
}

template <>
void draw_normals<JEDAX_ISA>(const Normals& w, Queue& queue) {
  const FlushSmallNumbers flush;
  const int64_t each = groups(w.count, kChunk);
  uint32_t bits[kChunk];
  for (int64_t item; take(queue, 1, item);) {
    const int64_t group = item / each, begin = item % each * kChunk;
    const int64_t count = w.count - begin < kChunk ? w.count - begin : kChunk;
    fill<JEDAX_ISA>(w.keys[2 * group], w.keys[2 * group + 1], uint64_t(begin), count, bits);
    normals(bits, count, w.numbers + group * w.count + begin);
  }
}

template <>
void add_up<JEDAX_ISA>(const Sums& w, Queue& queue) {
  const FlushSmallNumbers flush;
  const int64_t each = groups(w.n, kChunk);
  for (int64_t item; take(queue, 1, item);) {
    const int64_t strategy = item / each, begin = item % each * kChunk;
    const int64_t count = w.n - begin < kChunk ? w.n - begin : kChunk;
    const float* mean = w.mean + strategy * w.n + begin;
    float* sums = w.sums + strategy * w.n + begin;
    for (int64_t i = 0; i < count; ++i) sums[i] = 0;
    for (int64_t k = 0; k < w.population; ++k) {
      const float weight = w.weights[strategy * w.population + k];
      const float* x = w.genotypes + (strategy * w.population + k) * w.n + begin;
      if (weight == 0) continue;
      for (int64_t i = 0; i < count; ++i) sums[i] += weight * (x[i] - mean[i]);
    }
  }
}

}  // namespace es
}  // namespace jedax
