// Vectors, matrices and quaternions of packs, and the arctangent.
#pragma once

#include "core/lanes.h"
#include "core/maths.h"

namespace jedax {
namespace control {
namespace {

using Real = Pack<1>;
using Flag = Masks<1>;
constexpr int kLanes = kWidth;

struct Vec3 {
  Real x, y, z;
};

struct Matrix3 {
  Vec3 row[3];
};

struct Quaternion {
  Real w, x, y, z;
};

JEDAX_INLINE Vec3 zero3() { return {Real(0), Real(0), Real(0)}; }
JEDAX_INLINE Vec3 splat3(const float* a) { return {Real(a[0]), Real(a[1]), Real(a[2])}; }
JEDAX_INLINE Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
JEDAX_INLINE Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
JEDAX_INLINE Vec3 operator*(Vec3 a, Real s) { return {a.x * s, a.y * s, a.z * s}; }
// a s + b and b - a s
JEDAX_INLINE Vec3 fma(Vec3 a, Real s, Vec3 b) { return {fma(a.x, s, b.x), fma(a.y, s, b.y), fma(a.z, s, b.z)}; }
JEDAX_INLINE Vec3 fnma(Vec3 a, Real s, Vec3 b) { return {fnma(a.x, s, b.x), fnma(a.y, s, b.y), fnma(a.z, s, b.z)}; }
JEDAX_INLINE Real dot(Vec3 a, Vec3 b) { return fma(a.x, b.x, fma(a.y, b.y, a.z * b.z)); }
JEDAX_INLINE Vec3 cross(Vec3 a, Vec3 b) {
  return {fnma(a.z, b.y, a.y * b.z), fnma(a.x, b.z, a.z * b.x), fnma(a.y, b.x, a.x * b.y)};
}
JEDAX_INLINE Vec3 select(Flag m, Vec3 a, Vec3 b) {
  return {select(m, a.x, b.x), select(m, a.y, b.y), select(m, a.z, b.z)};
}
JEDAX_INLINE Real norm(Vec3 a) { return sqrt(dot(a, a)); }
// A vector of length 1; zero stays zero
JEDAX_INLINE Vec3 normalize(Vec3 a) {
  const Real length = norm(a);
  return a * (Real(1) / select(Real(0) < length, length, Real(1e-6f)));
}

JEDAX_INLINE Vec3 operator*(const Matrix3& m, Vec3 v) { return {dot(m.row[0], v), dot(m.row[1], v), dot(m.row[2], v)}; }
// The matrix times a constant vector
JEDAX_INLINE Vec3 times(const Matrix3& m, const float* v) { return m * splat3(v); }
// The transposed matrix times a vector
JEDAX_INLINE Vec3 transposed_times(const Matrix3& m, Vec3 v) {
  return fma(m.row[0], v.x, fma(m.row[1], v.y, m.row[2] * v.z));
}

JEDAX_INLINE Quaternion splat4(const float* a) { return {Real(a[0]), Real(a[1]), Real(a[2]), Real(a[3])}; }
JEDAX_INLINE Quaternion operator*(Quaternion a, Quaternion b) {
  return {fnma(a.z, b.z, fnma(a.y, b.y, fnma(a.x, b.x, a.w * b.w))),
          fnma(a.z, b.y, fma(a.y, b.z, fma(a.x, b.w, a.w * b.x))),
          fma(a.z, b.x, fma(a.y, b.w, fnma(a.x, b.z, a.w * b.y))),
          fma(a.z, b.w, fnma(a.y, b.x, fma(a.x, b.y, a.w * b.z)))};
}
JEDAX_INLINE Quaternion conjugate(Quaternion a) { return {a.w, 0.0f - a.x, 0.0f - a.y, 0.0f - a.z}; }

// The rotation matrix of a quaternion of length 1
JEDAX_INLINE Matrix3 matrix(Quaternion r) {
  const Real x2 = r.x + r.x, y2 = r.y + r.y, z2 = r.z + r.z;
  const Real xx = r.x * x2, yy = r.y * y2, zz = r.z * z2;
  const Real xy = r.x * y2, xz = r.x * z2, yz = r.y * z2;
  const Real wx = r.w * x2, wy = r.w * y2, wz = r.w * z2;
  return {{{1.0f - (yy + zz), xy - wz, xz + wy}, {xy + wz, 1.0f - (xx + zz), yz - wx}, {xz - wy, yz + wx, 1.0f - (xx + yy)}}};
}

// R S R' for a constant symmetric S (xx xy xz yy yz zz); returns the same six numbers
struct Symmetric {
  Real xx, xy, xz, yy, yz, zz;
};
JEDAX_INLINE Vec3 operator*(const Symmetric& s, Vec3 v) {
  return {fma(s.xx, v.x, fma(s.xy, v.y, s.xz * v.z)), fma(s.xy, v.x, fma(s.yy, v.y, s.yz * v.z)),
          fma(s.xz, v.x, fma(s.yz, v.y, s.zz * v.z))};
}
JEDAX_INLINE Symmetric rotated(const Matrix3& r, const float* s) {
  const Symmetric own{Real(s[0]), Real(s[1]), Real(s[2]), Real(s[3]), Real(s[4]), Real(s[5])};
  const Vec3 a = own * r.row[0], b = own * r.row[1], c = own * r.row[2];
  return {dot(r.row[0], a), dot(r.row[0], b), dot(r.row[0], c), dot(r.row[1], b), dot(r.row[1], c), dot(r.row[2], c)};
}

// The angle of the point (x, y), from -pi to pi; 0 for (0, 0). Within 3e-7.
JEDAX_INLINE Real atan2(Real y, Real x) {
  const Real ax = abs(x), ay = abs(y);
  const Real large = max(ax, ay), small = min(ax, ay);
  Real t = small / select(Real(0) < large, large, Real(1));
  // arctan t = pi / 8 + arctan((t - k) / (1 + k t)) for k = tan(pi / 8) keeps the argument below 0.42
  const Flag far = Real(0.41421356f) < t;
  const Real turned = (t - Real(0.41421356f)) / fma(t, Real(0.41421356f), Real(1));
  const Real u = select(far, turned, t);
  const Real s = u * u;
  Real p = fma(s, Real(0.0805374449538f), Real(-0.138776856032f));
  p = fma(p, s, Real(0.199777106478f));
  p = fma(p, s, Real(-0.333329491539f));
  Real angle = fma(p * s, u, u) + select(far, Real(0.39269908f), Real(0));
  angle = select(ax < ay, 1.57079633f - angle, angle);
  angle = select(x < Real(0), 3.14159265f - angle, angle);
  return select(y < Real(0), 0.0f - angle, angle);
}

}  // namespace
}  // namespace control
}  // namespace jedax
