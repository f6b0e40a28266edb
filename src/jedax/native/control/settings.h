// Reads the model and the episodes by the names of their settings, and checks that they fit together.
#pragma once

#include <algorithm>

#include "control/control.h"
#include "core/activations.h"

namespace jedax {
namespace control {

// A reader has `number(name, to)`; `choice(name, names, count)`, the number of the name given, `count` if it is unknown; and
// `array(name, to, width, rows)`, which returns the number of rows; it must be `rows` unless that is -1.

template <class Reader>
void read_model(Reader& r, Model& m) {
#define NUMBER(name) r.number(#name, m.name)
#define ROWS(name, width, rows) r.array(#name, m.name, width, rows)
  NUMBER(timestep), NUMBER(substeps), NUMBER(linear_decay), NUMBER(angular_decay), NUMBER(push_rate);
  NUMBER(coordinates);
  ROWS(gravity, 3, 1);
  m.links = ROWS(parents, 1, -1);
  ROWS(freedom, 1, m.links), ROWS(mass, 1, m.links), ROWS(center, 3, m.links);
  ROWS(inertia, 6, m.links), ROWS(inverse_inertia, 6, m.links);
  ROWS(anchor, 3, m.links), ROWS(axes, 9, m.links), ROWS(parent_anchor, 3, m.links), ROWS(parent_reach, 3, m.links);
  ROWS(parent_axes, 9, m.links), ROWS(frame, 4, m.links), ROWS(parent_frame, 4, m.links), ROWS(parity, 1, m.links);
  ROWS(stiffness, 1, m.links), ROWS(damping, 1, m.links), ROWS(limit_stiffness, 1, m.links);
  ROWS(angular_damping, 1, m.links);
  m.dofs = ROWS(turns, 1, -1);
  ROWS(slides, 3, m.dofs), ROWS(lowest, 1, m.dofs), ROWS(highest, 1, m.dofs);
  m.motors = ROWS(motor_dofs, 1, -1);
  ROWS(motor_lowest, 1, m.motors), ROWS(motor_highest, 1, m.motors), ROWS(motor_gain, 1, m.motors);
  ROWS(motor_gear, 1, m.motors), ROWS(motor_weakest, 1, m.motors), ROWS(motor_strongest, 1, m.motors);
  m.shapes = ROWS(shape_kinds, 1, -1);
  ROWS(shape_links, 1, m.shapes), ROWS(shape_places, 3, m.shapes), ROWS(shape_axes, 9, m.shapes);
  ROWS(shape_sizes, 3, m.shapes);
  m.pairs = ROWS(pair_shapes, 2, -1);
  ROWS(pair_friction, 1, m.pairs), ROWS(pair_bounce, 1, m.pairs);
#undef NUMBER
}

template <class Reader>
void read_episode(Reader& r, const Model& m, Episode& s) {
  s.num_layers = r.array("layers", s.layers, 1, -1);
  s.activation = r.choice("activation", kActivationNames, kNumActivations);
  s.params = 0;
  for (int i = 0; i + 1 < s.num_layers; ++i) s.params += (s.layers[i] + 1) * s.layers[i + 1];
#define NUMBER(name) r.number(#name, s.name)
#undef ROWS
#define ROWS(name, width, rows) r.array(#name, s.name, width, rows)
  NUMBER(steps), NUMBER(half_weights), NUMBER(sees_inertia), NUMBER(whole_body), NUMBER(has_target);
  NUMBER(charges_death), NUMBER(nan_ends);
  NUMBER(speed_reward), NUMBER(step_reward), NUMBER(input_cost), NUMBER(target_x), NUMBER(target_y), NUMBER(foot_margin);
  s.observation = ROWS(observed, 1, -1);
  ROWS(observed_least, 1, s.observation), ROWS(observed_most, 1, s.observation), ROWS(observed_from, 1, s.observation);
  ROWS(observed_scale, 1, s.observation);
  ROWS(action_scale, 1, m.motors), ROWS(action_shift, 1, m.motors);
  s.bounds = ROWS(bounded, 1, -1);
  ROWS(bounded_least, 1, s.bounds), ROWS(bounded_most, 1, s.bounds);
  s.feet = ROWS(foot_links, 1, -1);
  ROWS(foot_ends, 6, s.feet), ROWS(foot_radii, 1, s.feet);
  s.averages = ROWS(averaged, 1, -1);
#undef NUMBER
#undef ROWS
}

inline bool within(const int32_t* values, int count, int least, int most) {
  return std::all_of(values, values + count, [&](int32_t value) { return value >= least && value < most; });
}

// What is wrong with the settings; null: nothing
inline const char* check(const Model& m, const Episode& s) {
  const int values = num_values(m, s);
  int dofs = 0, coordinates = 0;
  bool ordered = m.links > 0;
  for (int i = 0; i < m.links; ++i) {
    const int count = m.freedom[i];
    ordered &= count >= 0 && count <= 3 && m.parents[i] >= -1 && m.parents[i] < i && (count > 0 || m.parents[i] < 0);
    dofs += count ? count : 6;
    coordinates += count ? count : 7;
  }
  if (!ordered || dofs != m.dofs || coordinates != m.coordinates) return "a wrong tree of links";
  bool pairs = true;
  for (int k = 0; k < m.pairs; ++k) {
    const int a = m.pair_shapes[2 * k], b = m.pair_shapes[2 * k + 1];
    pairs &= within(m.pair_shapes + 2 * k, 2, 0, m.shapes);
    pairs = pairs && m.shape_kinds[a] <= m.shape_kinds[b] && m.shape_kinds[b] != kPlane;
  }
  if (!pairs || !within(m.shape_kinds, m.shapes, 0, kNumShapes) || !within(m.shape_links, m.shapes, -1, m.links) ||
      !within(m.motor_dofs, m.motors, 0, m.dofs)) {
    return "a wrong pair of shapes or a wrong motor";
  }
  if (s.num_layers < 2 || !within(s.layers, s.num_layers, 1, INT32_MAX) || s.layers[0] != s.observation ||
      s.layers[s.num_layers - 1] != m.motors || s.activation == kNumActivations) {
    return "layers: they do not fit what is observed or the motors, or an unknown activation";
  }
  if (s.steps < 1 || m.substeps < 1 || !within(s.observed, s.observation, 0, values) ||
      !within(s.bounded, s.bounds, 0, values) || !within(s.averaged, s.averages, 0, values) ||
      !within(s.foot_links, s.feet, 0, m.links)) {
    return "a wrong episode";
  }
  return nullptr;
}

}  // namespace control
}  // namespace jedax
