// Links in motion: what the joints do to them, and one substep of time.
//
// The equations are those of Brax's spring engine (C. D. Freeman et al. 2021; brax.spring): joints are stiff springs with
// dampers between two anchors, contacts are impulses, and time goes on by semi-implicit Euler, in maximal coordinates.
// Everything here is in the frame of the world; Brax computes the same in the frames of joints.
#pragma once

#include "control/control.h"
#include "control/space.h"

namespace jedax {
namespace control {
namespace {

// The state of a link in every lane.
struct Link {
  Vec3 center;          // of mass
  Quaternion rotation;
  Vec3 velocity;        // of the centre of mass
  Vec3 spin;
  // From the rotation:
  Matrix3 matrix;
  Vec3 origin;          // of the link
  Vec3 origin_velocity;
  Symmetric inverse_inertia;
  // Of the substep:
  Vec3 force, torque;
  Vec3 push, twist;     // sums of the impulses of contacts
  Real touches;         // their number
};

// The world, as the parent of links without one.
JEDAX_INLINE Link world() {
  const Real zero(0), one(1);
  Link w;
  w.center = w.velocity = w.spin = w.origin = w.origin_velocity = zero3();
  w.rotation = {one, zero, zero, zero};
  w.matrix = {{{one, zero, zero}, {zero, one, zero}, {zero, zero, one}}};
  return w;
}

JEDAX_INLINE void derive(const Model& m, int index, Link& link) {
  link.matrix = matrix(link.rotation);
  const Vec3 arm = times(link.matrix, m.center + 3 * index);
  link.origin = link.center - arm;
  link.origin_velocity = link.velocity - cross(link.spin, arm);
  link.inverse_inertia = rotated(link.matrix, m.inverse_inertia + 6 * index);
}

// A joint as it stands: everything is measured from the parent to the child.
struct Joint {
  Vec3 parent_arm, arm;        // from the centres of mass to the anchors
  Vec3 offset;                 // between the anchors
  Vec3 drift;                  // velocity of the child's origin from the point of the parent at its anchor
  Vec3 spin;
  Vec3 parent_axis[3], axis[3];
};

JEDAX_INLINE void look_at_joint(const Model& m, int index, const Link& parent, const Link& child, Joint& j) {
  j.parent_arm = times(parent.matrix, m.parent_anchor + 3 * index);
  j.arm = times(child.matrix, m.anchor + 3 * index);
  j.offset = (child.center + j.arm) - (parent.center + j.parent_arm);
  // Brax moves the parent's velocity by the opposite of the arm.
  const Vec3 reach = times(parent.matrix, m.parent_reach + 3 * index);
  j.drift = child.origin_velocity - (parent.origin_velocity - cross(parent.spin, reach));
  j.spin = child.spin - parent.spin;
  for (int k = 0; k < 3; ++k) {
    j.parent_axis[k] = times(parent.matrix, m.parent_axes + 9 * index + 3 * k);
    j.axis[k] = times(child.matrix, m.axes + 9 * index + 3 * k);
  }
}

// The three angles of a joint, intrinsic x-y'-z'' from the parent's axes to the child's.
JEDAX_INLINE void angles_of(const Joint& j, float parity, int count, Real* angles) {
  const Vec3 nodes = cross(j.axis[2], j.parent_axis[0]);
  angles[0] = atan2(dot(nodes, cross(j.parent_axis[0], j.parent_axis[1])), dot(nodes, j.parent_axis[1]));
  if (count == 1) return;
  const Real a = dot(j.parent_axis[0], j.axis[0]), b = dot(j.parent_axis[0], j.axis[1]);
  angles[1] = atan2(dot(j.parent_axis[0], j.axis[2]), sqrt(fma(a, a, b * b)));
  if (count == 2) return;
  angles[2] = atan2(dot(nodes, cross(j.axis[1], j.axis[2])) * parity, dot(nodes, j.axis[1]));
}

// How far a coordinate is beyond its limits.
JEDAX_INLINE Real excess(Real value, float lowest, float highest) {
  return select(value < Real(lowest), value - lowest, select(Real(highest) < value, value - highest, Real(0)));
}

JEDAX_INLINE bool is_limited(const Model& m, int first, int count) {
  bool limited = false;
  for (int k = first; k < first + count; ++k) limited |= m.lowest[k] > -__builtin_inff() || m.highest[k] < __builtin_inff();
  return limited;
}

// The force on the child at its anchor and the torque on it; the parent gets the opposite. `motors`: of this joint.
JEDAX_INLINE void pull(const Model& m, int index, int first, const Link& parent, const Joint& j, const Real* motors,
                       Vec3& force, Vec3& torque) {
  const int count = m.freedom[index];
  const float stiffness = m.stiffness[index], limit_stiffness = m.limit_stiffness[index];
  force = fnma(j.drift, Real(m.damping[index]), j.offset * Real(-stiffness));
  torque = j.spin * Real(-m.angular_damping[index]);
  bool any_turns = false, any_slides = false;
  for (int k = 0; k < count; ++k) (m.turns[first + k] ? any_turns : any_slides) = true;
  // The axes about which motors and limits turn the child
  Vec3 about[3] = {j.parent_axis[0], j.axis[1], j.axis[2] * Real(m.parity[index])};
  Real angles[3];
  const bool limited = is_limited(m, first, count);
  if (limited && any_turns) angles_of(j, m.parity[index], count, angles);
  // What motor and limit do along or about an axis
  const auto drive = [&](int k, Real coordinate) {
    if (!limited) return motors[k];
    return fnma(excess(coordinate, m.lowest[first + k], m.highest[first + k]), Real(limit_stiffness), motors[k]);
  };
  if (any_slides) {
    Vec3 along[3];
    for (int k = 0; k < count; ++k) along[k] = times(parent.matrix, m.slides + 3 * (first + k));
    const Vec3 held = force;
    for (int k = 0; k < count; ++k) {
      if (!m.turns[first + k]) force = fnma(along[k], dot(along[k], held), force);
    }
    for (int k = 0; k < count; ++k) {
      if (!m.turns[first + k]) force = fma(along[k], drive(k, dot(along[k], j.offset)), force);
    }
  }
  for (int k = 0; k < count && any_turns; ++k) {
    if (m.turns[first + k]) torque = fma(about[k], drive(k, angles[k]), torque);
  }

  // What holds the axes of the joint in line
  const Real hold(-stiffness);
  if (count == 1) {
    torque = fma(cross(j.parent_axis[0], j.axis[0]), hold, torque);
    if (!any_turns) torque = fma(cross(j.parent_axis[1], j.axis[1]), hold, torque);
  } else if (count == 2 && !any_slides) {
    const Vec3 across = fnma(j.parent_axis[0], dot(j.axis[1], j.parent_axis[0]), j.axis[1]);
    torque = fma(cross(normalize(across), j.axis[1]), Real(-limit_stiffness), torque);
  } else if (count == 2) {
    const int k = m.turns[first] ? 0 : 1;
    torque = fma(cross(j.parent_axis[k], j.axis[k]), Real(-limit_stiffness), torque);
    if (!any_turns) torque = fma(cross(j.parent_axis[2], j.axis[2]), hold, torque);
  } else if (any_slides && any_turns) {
    Vec3 from = zero3(), to = zero3();
    for (int k = 0; k < 3; ++k) {
      if (m.turns[first + k]) from = from + j.parent_axis[k], to = to + j.axis[k];
    }
    torque = fma(cross(from, to), hold, torque);
  }
}

// Adds the forces of all joints; `motors`: the force or torque of the motors on each degree of freedom.
inline void apply_joints(const Model& m, Link* links, const Real* motors) {
  const Link ground = world();
  for (int i = 0, first = 0; i < m.links; ++i) {
    const int count = m.freedom[i], parent = m.parents[i];
    if (count > 0) {
      Joint j;
      Vec3 force, torque;
      const Link& from = parent < 0 ? ground : links[parent];
      look_at_joint(m, i, from, links[i], j);
      pull(m, i, first, from, j, motors + first, force, torque);
      links[i].force = links[i].force + force;
      links[i].torque = links[i].torque + torque + cross(j.arm, force);
      if (parent >= 0) {
        links[parent].force = links[parent].force - force;
        links[parent].torque = links[parent].torque - (torque + cross(j.parent_arm, force));
      }
    }
    first += count > 0 ? count : 6;
  }
}

// Accelerates all links by their forces.
inline void accelerate(const Model& m, Link* links) {
  const Vec3 gravity = splat3(m.gravity);
  const Real dt(m.timestep);
  for (int i = 0; i < m.links; ++i) {
    Link& link = links[i];
    link.velocity = fma(fma(link.force, Real(1 / m.mass[i]), gravity), dt, link.velocity);
    link.spin = fma(link.inverse_inertia * link.torque, dt, link.spin);
  }
}

// Moves all links, after the impulses of their contacts.
inline void move(const Model& m, Link* links) {
  const Real dt(m.timestep), half(0.5f * m.timestep);
  for (int i = 0; i < m.links; ++i) {
    Link& link = links[i];
    const Real share = Real(1) / (link.touches + 1e-8f);
    link.velocity = fma(link.push * share, Real(1 / m.mass[i]), link.velocity * Real(m.linear_decay));
    link.spin = link.spin * Real(m.angular_decay) + link.inverse_inertia * (link.twist * share);
    const Quaternion r = link.rotation;
    const Quaternion turn = Quaternion{Real(0), link.spin.x, link.spin.y, link.spin.z} * r;
    const Quaternion n{fma(turn.w, half, r.w), fma(turn.x, half, r.x), fma(turn.y, half, r.y), fma(turn.z, half, r.z)};
    const Real size = fma(n.w, n.w, fma(n.x, n.x, fma(n.y, n.y, n.z * n.z)));
    const Real inverse = Real(1) / sqrt(size);
    link.rotation = {n.w * inverse, n.x * inverse, n.y * inverse, n.z * inverse};
    link.center = fma(link.velocity, dt, link.center);
    derive(m, i, link);
  }
}

// Joint coordinates q and velocities qd (Brax's `kinematics.inverse`).
inline void coordinates(const Model& m, const Link* links, Real* q, Real* qd) {
  const Link ground = world();
  for (int i = 0, first = 0; i < m.links; ++i) {
    const int count = m.freedom[i], parent = m.parents[i];
    const Link& from = parent < 0 ? ground : links[parent];
    const Link& child = links[i];
    Joint j;
    look_at_joint(m, i, from, child, j);
    const Quaternion joint = from.rotation * splat4(m.parent_frame + 4 * i), own = child.rotation * splat4(m.frame + 4 * i);
    const Matrix3 joint_axes = matrix(joint), own_axes = matrix(own);
    if (count == 0) {
      const Quaternion turned = conjugate(joint) * own;
      const Vec3 place = transposed_times(joint_axes, j.offset), speed = transposed_times(joint_axes, j.drift);
      const Vec3 spin = transposed_times(own_axes, j.spin);
      const Real values[] = {place.x, place.y, place.z, turned.w, turned.x, turned.y, turned.z};
      const Real speeds[] = {speed.x, speed.y, speed.z, spin.x, spin.y, spin.z};
      for (Real value : values) *q++ = value;
      for (Real value : speeds) *qd++ = value;
      first += 6;
      continue;
    }
    Real angles[3];
    angles_of(j, m.parity[i], count, angles);
    // Brax takes the spin of a link without a parent in the joint's own frame, but the axes in the parent's.
    const Vec3 root_spin = transposed_times(own_axes, j.spin);
    for (int k = 0; k < count; ++k, ++first) {
      if (m.turns[first]) {
        const Real sign(k == 2 ? m.parity[i] : 1.0f);
        *q++ = angles[k];
        *qd++ = (parent < 0 ? dot(transposed_times(joint_axes, j.axis[k]), root_spin) : dot(j.axis[k], j.spin)) * sign;
      } else {
        const Vec3 along = times(from.matrix, m.slides + 3 * first);
        *q++ = dot(along, j.offset);
        *qd++ = dot(along, j.drift);
      }
    }
  }
}

}  // namespace
}  // namespace control
}  // namespace jedax
