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

// The logarithm of a number in (0, 1] (Cephes, logf).
inline float log(float t) {
  const int32_t exponent = int32_t(as_bits(t) - 0x3f3504f3u) >> 23;
  const float x = as_float(as_bits(t) - (uint32_t(exponent) << 23)) - 1.0f, z = x * x;
  float p = 7.0376836292e-2f;
  p = p * x - 1.1514610310e-1f;
  p = p * x + 1.1676998740e-1f;
  p = p * x - 1.2420140846e-1f;
  p = p * x + 1.4249322787e-1f;
  p = p * x - 1.6668057665e-1f;
  p = p * x + 2.0000714765e-1f;
  p = p * x - 2.4999993993e-1f;
  p = p * x + 3.3333331174e-1f;
  const float e = float(exponent);
  return (x + (p * x * z - 0.5f * z - 2.12194440e-4f * e)) + 0.693359375f * e;
}

// Standard normals from random bits as `jax.random.normal` draws them: a uniform number u in (-1, 1), and sqrt(2)
// erfinv(u) (M. Giles, Approximating the erfinv function, 2010).
inline float normal(uint32_t bits) {
  const float least = -0.99999994f;
  const float spread = as_float((bits >> 9) | 0x3f800000u) - 1.0f;
  const float moved = spread * 2.0f + least;
  const float u = moved > least ? moved : least;
  const float w = -log((1.0f - u) * (1.0f + u));
  const float a = w - 2.5f, b = __builtin_sqrtf(w) - 3.0f;
  float p = 2.81022636e-08f, q = -0.000200214257f;
  p = p * a + 3.43273939e-07f, q = q * b + 0.000100950558f;
  p = p * a - 3.5233877e-06f, q = q * b + 0.00134934322f;
  p = p * a - 4.39150654e-06f, q = q * b - 0.00367342844f;
  p = p * a + 0.00021858087f, q = q * b + 0.00573950773f;
  p = p * a - 0.00125372503f, q = q * b - 0.0076224613f;
  p = p * a - 0.00417768164f, q = q * b + 0.00943887047f;
  p = p * a + 0.246640727f, q = q * b + 1.00167406f;
  p = p * a + 1.50140941f, q = q * b + 2.83297682f;
  return 1.41421356f * ((w < 5.0f ? p : q) * u);
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

// Members of one strategy that are drawn together.
struct Group {
  const Samples& w;
  int64_t strategy, first, members, used;  // directions from `used` on have no part
  float *z, *products, *mixture;           // (kMembers, n), (m, kMembers), (m, kMembers)
  Vector* sums;                            // (m, kMembers)
  float of_z;
};

// Draws z, and multiplies it with the directions.
void draw_normals(Group& g) {
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
      float* to = g.z + b * n + begin;
      for (int64_t i = 0; i < count; ++i) to[i] = normal(bits[i]);
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
    float* to = w.mixture + g.strategy * w.m * w.population + g.first + b;
    for (int64_t j = 0; j < w.m; ++j) to[j * w.population] = j < g.used ? g.mixture[j * kMembers + b] : 0;
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
  Vector* sums = reinterpret_cast<Vector*>(buffer.take(rows * kWidth));
  float *products = buffer.take(rows), *mixture = buffer.take(rows), *z = buffer.take(kMembers * w.n);
  const int64_t each = groups(w.population, kMembers);
  for (int64_t item; take(queue, 1, item);) {
    const int64_t strategy = item / each, first = item % each * kMembers;
    Group g{w, strategy, first, w.population - first < kMembers ? w.population - first : kMembers, w.m,
            z, products, mixture, sums, 1};
    const float* rates = w.rates + strategy * w.m;
    while (g.used > 0 && rates[g.used - 1] == 0) --g.used;
    draw_normals(g);
    mix(g);
    place(g);
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
