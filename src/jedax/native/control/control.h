// Robots that policies control: what a call simulates, and where its results go.
#pragma once

#include <stdint.h>

#include "core/isa.h"
#include "core/queue.h"

namespace jedax {
namespace control {

enum Shape { kPlane, kSphere, kCapsule, kNumShapes };

// Links, joints, motors and shapes. Arrays have a row for each link, degree of freedom, motor, shape or pair of shapes;
// lengths are in metres, angles in radians. "In the frame of" a link: relative to its centre of mass, in its axes.
struct Model {
  int links, dofs, coordinates, motors, shapes, pairs;
  float timestep;
  int substeps;           // in a control step
  const float* gravity;   // (3,)
  float linear_decay;     // factors of all velocities in a substep
  float angular_decay;
  float push_rate;        // speed per metre of penetration with which contacts part

  // Links; -1 is the world, whose centre of mass is its origin
  const int32_t* parents;
  const int32_t* freedom;          // degrees of freedom of the joint to the parent; 0: moves freely
  const float* mass;
  const float* center;             // (3,) centre of mass from the origin of the link
  const float* inertia;            // (6,) xx xy xz yy yz zz, in the frame of the link
  const float* inverse_inertia;
  // The joint: axes that coincide when all its coordinates are zero; a slide or a hinge for each degree of freedom
  const float* anchor;             // (3,) in the frame of the link
  const float* axes;               // (3, 3) in the frame of the link, one axis in a row
  const float* parent_anchor;      // (3,) in the frame of the parent
  const float* parent_reach;       // (3,) the same point from the origin of the parent's link
  const float* parent_axes;        // (3, 3)
  const float* frame;              // (4,) quaternion from the joint to the link, and
  const float* parent_frame;       // (4,) from the joint to the parent
  const float* parity;             // 1 or -1: whether the axes are right-handed
  const float* stiffness;          // holds the joint together
  const float* damping;
  const float* limit_stiffness;    // keeps its coordinates between their limits
  const float* angular_damping;
  // Degrees of freedom
  const int32_t* turns;            // whether it is a hinge
  const float* slides;             // (3,) axis of a slide in the frame of the parent; zero for a hinge
  const float* lowest;
  const float* highest;
  // Motors
  const int32_t* motor_dofs;
  const float* motor_lowest;       // range of their inputs
  const float* motor_highest;
  const float* motor_gain;
  const float* motor_gear;
  const float* motor_weakest;      // range of their forces before the gear
  const float* motor_strongest;
  // Shapes
  const int32_t* shape_kinds;
  const int32_t* shape_links;
  const float* shape_places;       // (3,) centre in the frame of the link
  const float* shape_axes;         // (3, 3) one axis in a row; planes and capsules have the third
  const float* shape_sizes;        // (3,) radius and half length
  const int32_t* pair_shapes;      // (2,) two shapes that may touch, in the order of `Shape`
  const float* pair_friction;
  const float* pair_bounce;        // share of the speed with which they part
};

// What a policy sees, what it earns, and when an episode ends. Values of a state go by their numbers: q, qd, x, y and z of
// the first link, and, if `sees_inertia`, 10 numbers of each link (inertia about the centre of mass of all, and mass), 6 of
// each link (its share of the momentum's velocity, and spin), and the forces of the motors on each degree of freedom.
struct Episode {
  int steps;
  const int32_t* layers;  // neurons of each layer of the policy, observation and action included
  int num_layers, params, activation;
  int half_weights;       // whether weights are rounded to bfloat16
  int observation;          // numbers that the policy sees
  const int32_t* observed;  // (observation,) number of a value
  const float* observed_least;  // clipped to this range
  const float* observed_most;
  const float* observed_from;   // then shifted and scaled: (value - from) * scale
  const float* observed_scale;
  int sees_inertia;
  const float* action_scale;  // (motors,) input of a motor = action * scale + shift
  const float* action_shift;
  float speed_reward;   // for each m/s along x
  int whole_body;       // whether the speed is that of the centre of mass of all links; otherwise of the first link
  float step_reward;
  float input_cost;     // for the sum of the squared inputs of the motors
  int has_target;       // then the reward is minus the distance of the first link to the target, and nothing else
  float target_x, target_y;
  int charges_death;    // whether the last reward counts for all steps that are left when an episode ends early
  const int32_t* bounded;  // (bounds,) numbers of values; the episode ends when one leaves its range
  const float* bounded_least;
  const float* bounded_most;
  int bounds;
  int nan_ends;         // whether a value that is not a number ends the episode too
  // The descriptor: the share of steps with each foot on the floor, then means of values over the steps; x and y of the
  // first link after the last step where there are neither
  int feet;
  const int32_t* foot_links;
  const float* foot_ends;  // (2, 3) centres of its two spheres from the origin of the link
  const float* foot_radii;
  float foot_margin;
  const int32_t* averaged;  // (averages,) numbers of values
  int averages;
};

// How many values a state has.
inline int num_values(const Model& m, const Episode& e) {
  return m.coordinates + m.dofs + 3 + (e.sees_inertia ? 16 * m.links + m.dofs : 0);
}

// A call. Outputs that are null are not wanted; rows of a record after the end of an episode stay zero.
struct Work {
  const Model* model;
  const Episode* episode;
  const float* genotypes;
  // Of each episode: position, quaternion, velocity and angular velocity of the origin of each link, and what is seen first
  const float* starts;
  int64_t starts_row;    // floats of a start
  int64_t sharing;       // episodes in turn that begin in the same one
  Queue* queue;
  int group;             // episodes that a thread runs at once, at most
  float* fitness;
  float* descriptor;
  int32_t* length;
  float* observations;   // (steps + 1, observation)
  float* actions;        // (steps, motors)
  float* rewards;        // (steps,)
  bool* ends;            // (steps,)
  float* q;              // (steps, coordinates)
  float* positions;      // (steps, links, 3) of the origins of links
  float* rotations;      // (steps, links, 4)
};

template <Isa>
void run_episodes(const Work& work);
template <Isa>
int lanes();

}  // namespace control
}  // namespace jedax
