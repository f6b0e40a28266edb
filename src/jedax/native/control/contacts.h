// Contacts: where two shapes meet, and the impulse that parts them.
//
// Impulse and friction follow the rigid contact of E. Heiden et al. (NeuralSim, 2021) as Brax's spring engine has it; the
// places where spheres, capsules and planes meet follow MuJoCo's conventions (normals from the first shape to the second,
// the place halfway between the two surfaces).
#pragma once

#include "control/body.h"

namespace jedax {
namespace control {
namespace {

// A shape as it lies in the world.
struct Placed {
  Vec3 center, axis;  // the third of its axes: the normal of a plane, along a capsule
};

struct Contact {
  Real distance;  // negative where the shapes overlap
  Vec3 place, normal;
};

JEDAX_INLINE Placed placed(const Model& m, const Link* links, int shape) {
  const int link = m.shape_links[shape];
  const float *place = m.shape_places + 3 * shape, *axis = m.shape_axes + 9 * shape + 6;
  if (link < 0) return {splat3(place), splat3(axis)};
  return {links[link].center + times(links[link].matrix, place), times(links[link].matrix, axis)};
}

// The number that stands for the inverse inertia of a link where impulses are measured.
//
// The equations ask for the link's own matrix. Brax takes one element of all matrices in a row, that with the link's
// number (`i_inv.take(link_idx)` without an axis), and its robots are tuned to that.
JEDAX_INLINE Real softness(const Link* links, int link) {
  const Symmetric& s = links[link / 9].inverse_inertia;
  const Real rows[9] = {s.xx, s.xy, s.xz, s.xy, s.yy, s.yz, s.xz, s.yz, s.zz};
  return rows[link % 9];
}

// Adds the impulses of one contact between the links of two shapes; -1 is the world.
inline void part(const Model& m, Link* links, int pair, const Contact& c) {
  const int sides[2] = {m.shape_links[m.pair_shapes[2 * pair]], m.shape_links[m.pair_shapes[2 * pair + 1]]};
  Vec3 arms[2];
  Vec3 drift = zero3();  // velocity of the first shape from the second at the contact
  float lightness = 0;   // sum of the inverse masses
  for (int side = 0; side < 2; ++side) {
    if (sides[side] < 0) continue;
    const Link& link = links[sides[side]];
    arms[side] = c.place - link.center;
    const Vec3 speed = link.velocity + cross(link.spin, arms[side]);
    drift = side == 0 ? speed : drift - speed;
    lightness += 1 / m.mass[sides[side]];
  }
  // The inverse of the mass that an impulse along a direction meets
  const auto yields = [&](Vec3 direction) {
    Real sum(lightness);
    for (int side = 0; side < 2; ++side) {
      if (sides[side] < 0) continue;
      const Vec3 lever = cross(arms[side], direction);
      sum = fma(dot(lever, lever), softness(links, sides[side]), sum);
    }
    return sum;
  };
  const Real closing = dot(c.normal, drift);  // positive where they come closer
  const Real impulse = fma(closing, Real(1 + m.pair_bounce[pair]), c.distance * Real(-m.push_rate)) / yields(c.normal);
  const Vec3 sliding = fnma(c.normal, closing, drift);
  const Real speed = norm(sliding);
  const Vec3 direction = sliding * (Real(1) / (speed + 1e-6f));
  const Real drag = min(impulse * m.pair_friction[pair], speed / yields(direction));
  const Flag touches = (c.distance < Real(0)) & (Real(0) < closing) & (Real(0) < impulse);
  const Flag drags = touches & (Real(1e-3f) < speed);
  // On the first link; what is not finite in lanes that do not touch stays out of it.
  const Vec3 total = c.normal * (0.0f - impulse) - direction * select(drags, drag, Real(0));
  const Real counted = select(touches, Real(1), Real(0));
  for (int side = 0; side < 2; ++side) {
    if (sides[side] < 0) continue;
    Link& link = links[sides[side]];
    const Vec3 own = side == 0 ? total : zero3() - total;
    link.push = link.push + select(touches, own, zero3());
    link.twist = link.twist + select(touches, cross(arms[side], own), zero3());
    link.touches = link.touches + counted;
  }
}

// Adds the impulses of a contact in the lanes where the shapes are near.
JEDAX_INLINE void part_if_any(const Model& m, Link* links, int pair, Contact c, Flag near) {
  c.distance = select(near, c.distance, Real(1));
  if (bits(c.distance < Real(0))) part(m, links, pair, c);
}

JEDAX_INLINE Contact plane_and_sphere(const Placed& plane, Vec3 center, float radius) {
  const Real distance = dot(center - plane.center, plane.axis) - radius;
  return {distance, fnma(plane.axis, fma(distance, Real(0.5f), Real(radius)), center), plane.axis};
}

JEDAX_INLINE Contact two_spheres(Vec3 from, float radius, Vec3 to, float other_radius) {
  const Vec3 apart = to - from;
  const Real length = norm(apart);
  const Flag known = Real(0) < length;
  const Vec3 normal = select(known, apart * (Real(1) / select(known, length, Real(1))), Vec3{Real(1), Real(0), Real(0)});
  const Real distance = length - (radius + other_radius);
  return {distance, fma(normal, fma(distance, Real(0.5f), Real(radius)), from), normal};
}

JEDAX_INLINE Real clip(Real a, Real low, Real high) { return min(high, max(low, a)); }

// The point of the segment center +- axis half that is nearest to a point
JEDAX_INLINE Vec3 nearest_on_segment(Vec3 center, Vec3 axis, float half, Vec3 point) {
  return fma(axis, clip(dot(point - center, axis), Real(-half), Real(half)), center);
}

JEDAX_INLINE Contact two_capsules(const Placed& a, const float* size_a, const Placed& b, const float* size_b) {
  const float half_a = size_a[1], half_b = size_b[1];
  const Vec3 from_b = a.center - b.center;
  const Real between = dot(a.axis, b.axis), along_a = dot(a.axis, from_b), along_b = dot(b.axis, from_b);
  const Real free_a = fma(between, along_b, 0.0f - along_a) / (fnma(between, between, Real(1)) + 1e-6f);
  const Real free_b = fma(free_a, between, along_b);
  const Vec3 on_a = fma(a.axis, clip(free_a, Real(-half_a), Real(half_a)), a.center);
  const Vec3 on_b = fma(b.axis, clip(free_b, Real(-half_b), Real(half_b)), b.center);
  // Where a point was clipped to an end, the nearest point to it on the other segment is another one.
  const Vec3 new_a = nearest_on_segment(a.center, a.axis, half_a, on_b);
  const Vec3 new_b = nearest_on_segment(b.center, b.axis, half_b, on_a);
  const Vec3 gap_a = on_b - new_a, gap_b = on_a - new_b;
  const Flag first = dot(gap_a, gap_a) < dot(gap_b, gap_b);
  return two_spheres(select(first, new_a, on_a), size_a[0], select(first, on_b, new_b), size_b[0]);
}

// Adds the impulses of all contacts between two shapes, in the lanes where they are near.
inline void collide(const Model& m, Link* links, int pair, Flag near) {
  const int first = m.pair_shapes[2 * pair], second = m.pair_shapes[2 * pair + 1];
  const Placed a = placed(m, links, first), b = placed(m, links, second);
  const float *size_a = m.shape_sizes + 3 * first, *size_b = m.shape_sizes + 3 * second;
  const int kind_a = m.shape_kinds[first], kind_b = m.shape_kinds[second];
  if (kind_a == kPlane && kind_b == kSphere) {
    part_if_any(m, links, pair, plane_and_sphere(a, b.center, size_b[0]), near);
  } else if (kind_a == kPlane && kind_b == kCapsule) {
    for (int side = -1; side <= 1; side += 2) {
      part_if_any(m, links, pair, plane_and_sphere(a, fma(b.axis, Real(side * size_b[1]), b.center), size_b[0]), near);
    }
  } else if (kind_a == kSphere && kind_b == kSphere) {
    part_if_any(m, links, pair, two_spheres(a.center, size_a[0], b.center, size_b[0]), near);
  } else if (kind_a == kSphere && kind_b == kCapsule) {
    const Vec3 nearest = nearest_on_segment(b.center, b.axis, size_b[1], a.center);
    part_if_any(m, links, pair, two_spheres(a.center, size_a[0], nearest, size_b[0]), near);
  } else {
    part_if_any(m, links, pair, two_capsules(a, size_a, b, size_b), near);
  }
}

}  // namespace
}  // namespace control
}  // namespace jedax
