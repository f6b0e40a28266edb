// Episodes of robots in lanes: each lane takes another robot as soon as its episode has ended.
#pragma once

#include "control/contacts.h"
#include "control/policy.h"

namespace jedax {
namespace control {
namespace {

inline int widest_layer(const Episode& e) {
  int most = 0;
  for (int l = 0; l < e.num_layers; ++l) most = e.layers[l] > most ? e.layers[l] : most;
  return whole_vectors(most) * kWidth;
}

// How many numbers of the descriptor are sums over the steps: one for each foot, then one for each average.
inline int num_sums(const Episode& e) { return e.feet + e.averages; }

// Room for a policy, in floats.
inline int64_t policy_floats_of(const Episode& e) {
  return whole_vectors(int((laid_out_weights(e) + e.half_weights) / (1 + e.half_weights))) * kWidth;
}

// Robots under way, one in each active lane.
struct Group {
  const Work& work;
  const Model& m;
  const Episode& e;
  const int observation, motors;
  const int64_t policy_floats;
  Link* links;
  Real *values, *forces, *sums;
  float *policies, *seen, *actions, *decisions;
  int32_t* near;     // pairs of shapes that may meet in this control step, and
  Flag* near_lanes;  // in which lanes
  int num_near = 0;
  int64_t robot[kLanes];
  int32_t steps[kLanes];
  alignas(64) float fitness[kLanes];
  unsigned active = 0;
  bool upwards = false;

  static int64_t link_floats() { return sizeof(Link) / sizeof(float); }
  static int64_t floats(const Work& w) {
    const Model& m = *w.model;
    const Episode& e = *w.episode;
    const int observation = e.layers[0];
    return link_floats() * m.links + kLanes * (num_values(m, e) + m.dofs + m.motors + num_sums(e) + observation) +
           w.group * policy_floats_of(e) + 2 * widest_layer(e) + (1 + kLanes) * m.pairs + 64;
  }

  Group(const Work& w, Buffer& buffer)
      : work(w), m(*w.model), e(*w.episode), observation(e.layers[0]), motors(m.motors), policy_floats(policy_floats_of(e)),
        links(reinterpret_cast<Link*>(buffer.take(link_floats() * m.links))),
        values(packs<1>(buffer.take(kLanes * num_values(m, e)))),
        forces(packs<1>(buffer.take(kLanes * m.dofs))),
        sums(packs<1>(buffer.take(kLanes * num_sums(e)))),
        policies(buffer.take(w.group * policy_floats)),
        seen(nullptr), actions(buffer.take(kLanes * m.motors)),
        decisions(buffer.take(2 * widest_layer(e))) {
    seen = buffer.take(kLanes * observation);
    near_lanes = reinterpret_cast<Flag*>(buffer.take(kLanes * m.pairs));
    near = reinterpret_cast<int32_t*>(buffer.take(m.pairs));
    for (int lane = 0; lane < kLanes; ++lane) place(lane, w.starts);
  }

  // Puts a robot's first state into a lane.
  void place(int lane, const float* start) {
    for (int i = 0; i < m.links; ++i, start += 13) {
      const float *p = start, *r = start + 3, *v = start + 7, *w = start + 10, *c = m.center + 3 * i;
      // The centre of mass: p + R c, and its velocity: v + w x R c
      const float s = 2 * (r[1] * c[0] + r[2] * c[1] + r[3] * c[2]);
      const float d = r[0] * r[0] - r[1] * r[1] - r[2] * r[2] - r[3] * r[3];
      const float arm[3] = {s * r[1] + d * c[0] + 2 * r[0] * (r[2] * c[2] - r[3] * c[1]),
                            s * r[2] + d * c[1] + 2 * r[0] * (r[3] * c[0] - r[1] * c[2]),
                            s * r[3] + d * c[2] + 2 * r[0] * (r[1] * c[1] - r[2] * c[0])};
      const float values[13] = {p[0] + arm[0], p[1] + arm[1], p[2] + arm[2], r[0], r[1], r[2], r[3],
                                v[0] + w[1] * arm[2] - w[2] * arm[1], v[1] + w[2] * arm[0] - w[0] * arm[2],
                                v[2] + w[0] * arm[1] - w[1] * arm[0], w[0], w[1], w[2]};
      float* to = reinterpret_cast<float*>(links + i) + lane;  // a link begins with these thirteen
      for (int k = 0; k < 13; ++k) to[k * kLanes] = values[k];
    }
  }
};

// Writes zeros where the record of an episode will not be written.
inline void clear_record(const Work& w, int64_t robot) {
  const Model& m = *w.model;
  const Episode& e = *w.episode;
  const auto clear = [&](float* rows, int64_t floats) {
    if (rows) __builtin_memset(rows + robot * floats, 0, floats * sizeof(float));
  };
  const int64_t steps = e.steps;
  clear(w.observations, (steps + 1) * e.layers[0]);
  clear(w.actions, steps * m.motors);
  clear(w.rewards, steps);
  clear(w.q, steps * m.coordinates);
  clear(w.positions, steps * m.links * 3);
  clear(w.rotations, steps * m.links * 4);
  if (w.ends) __builtin_memset(w.ends + robot * steps, 0, steps);
}

// Begins the episode of a robot in a lane; a policy with weights that are not finite fails at once.
inline bool begin(Group& g, int lane, int64_t robot) {
  const Work& w = g.work;
  const Episode& e = g.e;
  clear_record(w, robot);
  const float* genotype = w.genotypes + robot * e.params;
  const int descriptors = num_sums(e) ? num_sums(e) : 2;
  if (!is_finite(genotype, e.params)) {
    w.fitness[robot] = __builtin_nanf("");
    for (int k = 0; k < descriptors; ++k) w.descriptor[robot * descriptors + k] = 0;
    w.length[robot] = 0;
    return false;
  }
  const float* start = w.starts + robot / w.sharing * w.starts_row;
  g.place(lane, start);
  __builtin_memcpy(g.seen + lane * g.observation, start + 13 * g.m.links, g.observation * sizeof(float));
  if (w.observations) {
    __builtin_memcpy(w.observations + robot * (e.steps + 1) * g.observation, g.seen + lane * g.observation,
                     g.observation * sizeof(float));
  }
  float* policy = g.policies + lane * g.policy_floats;
  if (e.half_weights) {
    lay_out(e, genotype, reinterpret_cast<Half*>(policy));
  } else {
    lay_out(e, genotype, policy);
  }
  g.robot[lane] = robot;
  g.steps[lane] = 0;
  g.fitness[lane] = 0;
  for (int k = 0; k < num_sums(e); ++k) g.sums[k].v[0][lane] = 0;
  g.active |= 1u << lane;
  return true;
}

inline void fill(Group& g, int lane) {
  int64_t robot;
  while (take(*g.work.queue, 1, robot)) {
    if (begin(g, lane, robot)) return;
  }
}

// Finds the pairs that may meet within a control step: all but those of shapes far from one that stands still. A lane
// goes by its own state, so that its neighbours do not matter.
inline void find_near(Group& g) {
  const Model& m = g.m;
  const float time = m.timestep * m.substeps;
  g.num_near = 0;
  for (int pair = 0; pair < m.pairs; ++pair) {
    int still = m.pair_shapes[2 * pair], moving = m.pair_shapes[2 * pair + 1];
    if (m.shape_links[still] >= 0) {
      const int swap = still;
      still = moving;
      moving = swap;
    }
    Flag may_meet = Real(0) < Real(1);
    if (m.shape_links[still] < 0 && m.shape_links[moving] >= 0 && m.shape_kinds[still] != kPlane) {
      const float *a = m.shape_sizes + 3 * still, *b = m.shape_sizes + 3 * moving;
      const float half = m.shape_kinds[still] == kCapsule ? a[1] : 0;
      const float moving_half = m.shape_kinds[moving] == kCapsule ? b[1] : 0;
      const float reaches = a[0] + b[0] + moving_half;
      const Placed wall = placed(m, g.links, still), body = placed(m, g.links, moving);
      const Vec3 gap = body.center - nearest_on_segment(wall.center, wall.axis, half, body.center);
      // A metre more than it goes at twice its speed
      const Real may = fma(norm(g.links[m.shape_links[moving]].velocity), Real(2 * time), Real(reaches + 1));
      may_meet = norm(gap) < may;
    }
    if (!(bits(may_meet) & g.active)) continue;
    g.near[g.num_near] = pair;
    g.near_lanes[g.num_near++] = may_meet;
  }
}

inline void simulate(Group& g) {
  const Model& m = g.m;
  find_near(g);
  for (int substep = 0; substep < m.substeps; ++substep) {
    for (int i = 0; i < m.links; ++i) {
      Link& link = g.links[i];
      link.force = link.torque = link.push = link.twist = zero3();
      link.touches = Real(0);
    }
    apply_joints(m, g.links, g.forces);
    accelerate(m, g.links);
    for (int k = 0; k < g.num_near; ++k) collide(m, g.links, g.near[k], g.near_lanes[k]);
    move(m, g.links);
  }
}

inline Vec3 center_of_mass(const Model& m, const Link* links, float& mass) {
  Vec3 sum = zero3();
  mass = 0;
  for (int i = 0; i < m.links; ++i) {
    sum = fma(links[i].center, Real(m.mass[i]), sum);
    mass += m.mass[i];
  }
  return sum * Real(1 / mass);
}

// Inertia about the centre of mass of all links, momentum and forces (Brax's humanoid).
inline void see_inertia(const Model& m, const Link* links, const Real* forces, Real* to) {
  float mass;
  const Vec3 center = center_of_mass(m, links, mass);
  for (int i = 0; i < m.links; ++i) {
    const Symmetric own = rotated(links[i].matrix, m.inertia + 6 * i);
    const Vec3 p = links[i].center - center;
    const Vec3 heavy = p * Real(m.mass[i]);
    const Real xy = fnma(heavy.x, p.y, own.xy), xz = fnma(heavy.x, p.z, own.xz), yz = fnma(heavy.y, p.z, own.yz);
    const Real numbers[] = {own.xx + fma(heavy.y, p.y, heavy.z * p.z), xy, xz, xy,
                            own.yy + fma(heavy.x, p.x, heavy.z * p.z), yz, xz, yz,
                            own.zz + fma(heavy.x, p.x, heavy.y * p.y), Real(m.mass[i])};
    for (Real number : numbers) *to++ = number;
  }
  for (int i = 0; i < m.links; ++i) {
    const Vec3 speed = links[i].velocity * Real(m.mass[i] / mass), spin = links[i].spin;
    const Real numbers[] = {speed.x, speed.y, speed.z, spin.x, spin.y, spin.z};
    for (Real number : numbers) *to++ = number;
  }
  for (int k = 0; k < m.dofs; ++k) *to++ = forces[k];
}

// The values of the state, by their numbers.
inline void measure(Group& g) {
  const Model& m = g.m;
  coordinates(m, g.links, g.values, g.values + m.coordinates);
  Real* to = g.values + m.coordinates + m.dofs;
  *to++ = g.links[0].origin.x;
  *to++ = g.links[0].origin.y;
  *to++ = g.links[0].origin.z;
  if (g.e.sees_inertia) see_inertia(m, g.links, g.forces, to);
}

inline void observe(Group& g) {
  const Episode& e = g.e;
  for (int k = 0; k < g.observation; ++k) {
    const Real value = clip(g.values[e.observed[k]], Real(e.observed_least[k]), Real(e.observed_most[k]));
    const Real shown = (value - e.observed_from[k]) * e.observed_scale[k];
    for (int lane = 0; lane < kLanes; ++lane) g.seen[lane * g.observation + k] = shown.v[0][lane];
  }
}

// The policies of all active lanes decide; the motors get their inputs and pull. Returns what the inputs cost.
inline Real act(Group& g) {
  const Model& m = g.m;
  const Episode& e = g.e;
  const int widest = widest_layer(e);
  // Up and down in turn: the weights of the last policies are still in the cache and come first.
  g.upwards = !g.upwards;
  for (int k = 0; k < kLanes; ++k) {
    const int lane = g.upwards ? k : kLanes - 1 - k;
    if (!(g.active >> lane & 1)) continue;
    __builtin_memcpy(g.decisions, g.seen + lane * g.observation, g.observation * sizeof(float));
    const float* policy = g.policies + lane * g.policy_floats;
    const float* action = e.half_weights
                              ? decide(e, reinterpret_cast<const Half*>(policy), g.decisions, g.decisions + widest)
                              : decide(e, policy, g.decisions, g.decisions + widest);
    for (int k = 0; k < m.motors; ++k) g.actions[k * kLanes + lane] = action[k];
  }
  for (int k = 0; k < m.dofs; ++k) g.forces[k] = Real(0);
  Real squares(0);
  for (int k = 0; k < m.motors; ++k) {
    const Real input = fma(load_pack<1>(g.actions + k * kLanes), Real(e.action_scale[k]), Real(e.action_shift[k]));
    squares = fma(input, input, squares);
    const Real held = clip(input, Real(m.motor_lowest[k]), Real(m.motor_highest[k]));
    const Real force = clip(held * m.motor_gain[k], Real(m.motor_weakest[k]), Real(m.motor_strongest[k]));
    Real& on = g.forces[m.motor_dofs[k]];
    on = fma(force, Real(m.motor_gear[k]), on);
  }
  return squares * e.input_cost;
}

// Lanes whose values have left their ranges.
inline unsigned out_of_bounds(const Group& g) {
  const Episode& e = g.e;
  unsigned ended = 0;
  for (int k = 0; k < e.bounds; ++k) {
    const Real value = g.values[e.bounded[k]], least(e.bounded_least[k]), most(e.bounded_most[k]);
    ended |= e.nan_ends ? ~bits((least < value) & (value < most)) : bits(value < least) | bits(most < value);
  }
  return ended & ((1ull << kLanes) - 1);
}

inline void record(const Group& g, int lane, float reward, bool ended) {
  const Work& w = g.work;
  const Model& m = g.m;
  const int64_t robot = g.robot[lane], row = robot * g.e.steps + g.steps[lane];
  if (w.observations) {
    __builtin_memcpy(w.observations + (row + robot + 1) * g.observation, g.seen + lane * g.observation,
                     g.observation * sizeof(float));
  }
  for (int k = 0; w.actions && k < m.motors; ++k) w.actions[row * m.motors + k] = g.actions[k * kLanes + lane];
  if (w.rewards) w.rewards[row] = reward;
  if (w.ends) w.ends[row] = ended;
  for (int k = 0; w.q && k < m.coordinates; ++k) w.q[row * m.coordinates + k] = g.values[k].v[0][lane];
  for (int i = 0; w.positions && i < m.links; ++i) {
    const Vec3& at = g.links[i].origin;
    float* to = w.positions + (row * m.links + i) * 3;
    to[0] = at.x.v[0][lane], to[1] = at.y.v[0][lane], to[2] = at.z.v[0][lane];
  }
  for (int i = 0; w.rotations && i < m.links; ++i) {
    const Quaternion& r = g.links[i].rotation;
    float* to = w.rotations + (row * m.links + i) * 4;
    to[0] = r.w.v[0][lane], to[1] = r.x.v[0][lane], to[2] = r.y.v[0][lane], to[3] = r.z.v[0][lane];
  }
}

inline void finish(Group& g, int lane) {
  const Work& w = g.work;
  const int64_t robot = g.robot[lane];
  w.fitness[robot] = g.fitness[lane];
  w.length[robot] = g.steps[lane];
  if (const int sums = num_sums(g.e)) {
    for (int k = 0; k < sums; ++k) w.descriptor[robot * sums + k] = g.sums[k].v[0][lane] / float(g.steps[lane]);
  } else {
    w.descriptor[robot * 2] = g.links[0].origin.x.v[0][lane];
    w.descriptor[robot * 2 + 1] = g.links[0].origin.y.v[0][lane];
  }
}

// How far along x: the first link, or the centre of mass of all.
inline Real progress(const Group& g) {
  float mass;
  return g.e.whole_body ? center_of_mass(g.m, g.links, mass).x : g.links[0].origin.x;
}

inline void run(Group& g) {
  const Model& m = g.m;
  const Episode& e = g.e;
  const float per_second = 1 / (m.timestep * m.substeps);
  while (g.active) {
    const Real cost = act(g), before = progress(g);
    simulate(g);
    measure(g);
    observe(g);
    const unsigned out = out_of_bounds(g);
    Real earned;
    if (e.has_target) {
      const Real dx = e.target_x - g.links[0].origin.x, dy = e.target_y - g.links[0].origin.y;
      earned = 0.0f - sqrt(fma(dx, dx, dy * dy));
    } else {
      earned = fma((progress(g) - before) * per_second, Real(e.speed_reward), Real(e.step_reward)) - cost;
    }
    for (int k = 0; k < e.feet; ++k) {
      const Link& link = g.links[e.foot_links[k]];
      const float *one = e.foot_ends + 6 * k, *other = one + 3;
      const Real low = min(dot(link.matrix.row[2], splat3(one)), dot(link.matrix.row[2], splat3(other)));
      const Real height = (link.origin.z + low) - e.foot_radii[k];
      g.sums[k] = g.sums[k] + select(height <= Real(e.foot_margin), Real(1), Real(0));
    }
    for (int k = 0; k < e.averages; ++k) g.sums[e.feet + k] = g.sums[e.feet + k] + g.values[e.averaged[k]];
    bool changed = false;
    for (int lane = 0; lane < kLanes; ++lane) {
      if (!(g.active >> lane & 1)) continue;
      const bool ended = out >> lane & 1;
      float reward = earned.v[0][lane];
      if (ended && e.charges_death) reward *= float(e.steps - g.steps[lane]);
      g.fitness[lane] += reward;
      record(g, lane, reward, ended);
      if (++g.steps[lane] < e.steps && !ended) continue;
      finish(g, lane);
      g.active &= ~(1u << lane);
      fill(g, lane);
      changed = true;
    }
    for (int i = 0; changed && i < m.links; ++i) derive(m, i, g.links[i]);
  }
}

inline void run_all(const Work& work) {
  Buffer buffer(Group::floats(work));
  if (!buffer.ok()) return;
  Group group(work, buffer);
  const int64_t share = work.queue->share;
  for (int lane = 0; lane < work.group && lane < share; ++lane) fill(group, lane);
  for (int i = 0; i < work.model->links; ++i) derive(*work.model, i, group.links[i]);
  run(group);
}

}  // namespace
}  // namespace control
}  // namespace jedax
