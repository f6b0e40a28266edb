// The functions that XLA calls: they read and check the settings, and share the episodes between threads.

#include <algorithm>
#include <string_view>

#include "control/control.h"
#include "core/activations.h"
#include "core/ffi.h"
#include "core/threads.h"

namespace jedax {
namespace control {
namespace {

// Reads settings; arrays must have the number of rows that the settings before them name.
class Reader {
 public:
  explicit Reader(const ffi::Dictionary& given) : attributes_(given) {}

  template <class T>
  void number(const char* name, T& to) {
    attributes_.read(name, to);
  }

  void flag(const char* name, int& to) {
    int32_t value = 0;
    attributes_.read(name, value);
    to = value;
  }

  template <class T>
  int array(const char* name, const T*& to, int width, int rows = -1) {
    ffi::Span<const T> found;
    attributes_.read(name, found);
    to = found.begin();
    const int got = int(found.size());
    if ((rows >= 0 && got != rows * width) || got % width != 0) wrong_ = wrong_ ? wrong_ : name;
    return got / width;
  }

  ffi::Error finish() const {
    if (ffi::Error error = attributes_.finish(); error.failure()) return error;
    if (wrong_) return ffi::Error::InvalidArgument(std::string(wrong_) + ": a wrong number of values");
    return ffi::Error::Success();
  }

  Attributes& attributes() { return attributes_; }

 private:
  Attributes attributes_;
  const char* wrong_ = nullptr;
};

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

void read_episode(Reader& r, const Model& m, Episode& s) {
  ffi::Span<const int32_t> layers;
  std::string_view activation;
  r.attributes().read("layers", layers);
  r.attributes().read("activation", activation);
  s.layers = layers.begin();
  s.num_layers = int(layers.size());
  s.activation = int(std::find(kActivationNames, kActivationNames + kNumActivations, activation) - kActivationNames);
  s.params = 0;
  for (int i = 0; i + 1 < s.num_layers; ++i) s.params += (s.layers[i] + 1) * s.layers[i + 1];
  r.flag("steps", s.steps), r.flag("sees_inertia", s.sees_inertia), r.flag("whole_body", s.whole_body);
  r.flag("has_target", s.has_target), r.flag("charges_death", s.charges_death), r.flag("nan_ends", s.nan_ends);
#define NUMBER(name) r.number(#name, s.name)
#undef ROWS
#define ROWS(name, width, rows) r.array(#name, s.name, width, rows)
  NUMBER(speed_reward), NUMBER(step_reward), NUMBER(input_cost), NUMBER(target_x), NUMBER(target_y), NUMBER(foot_margin);
  const int observation = ROWS(observed, 1, -1);
  ROWS(observed_least, 1, observation), ROWS(observed_most, 1, observation), ROWS(observed_from, 1, observation);
  ROWS(observed_scale, 1, observation);
  ROWS(action_scale, 1, m.motors), ROWS(action_shift, 1, m.motors);
  s.bounds = ROWS(bounded, 1, -1);
  ROWS(bounded_least, 1, s.bounds), ROWS(bounded_most, 1, s.bounds);
  s.feet = ROWS(foot_links, 1, -1);
  ROWS(foot_ends, 6, s.feet), ROWS(foot_radii, 1, s.feet);
#undef NUMBER
#undef ROWS
}

bool within(const int32_t* values, int count, int least, int most) {
  return std::all_of(values, values + count, [&](int32_t value) { return value >= least && value < most; });
}

ffi::Error check(const Model& m, const Episode& s) {
  const int values = m.coordinates + m.dofs + 3 + (s.sees_inertia ? 16 * m.links + m.dofs : 0);
  int dofs = 0, coordinates = 0;
  bool ordered = m.links > 0;
  for (int i = 0; i < m.links; ++i) {
    const int count = m.freedom[i];
    ordered &= count >= 0 && count <= 3 && m.parents[i] >= -1 && m.parents[i] < i && (count > 0 || m.parents[i] < 0);
    dofs += count ? count : 6;
    coordinates += count ? count : 7;
  }
  if (!ordered || dofs != m.dofs || coordinates != m.coordinates) return ffi::Error::InvalidArgument("a wrong tree of links");
  bool pairs = true;
  for (int k = 0; k < m.pairs; ++k) {
    const int a = m.pair_shapes[2 * k], b = m.pair_shapes[2 * k + 1];
    pairs &= within(m.pair_shapes + 2 * k, 2, 0, m.shapes);
    pairs = pairs && m.shape_kinds[a] <= m.shape_kinds[b] && m.shape_kinds[b] != kPlane && m.shape_kinds[a] != kBox;
  }
  if (!pairs || !within(m.shape_kinds, m.shapes, 0, kNumShapes) || !within(m.shape_links, m.shapes, -1, m.links) ||
      !within(m.motor_dofs, m.motors, 0, m.dofs)) {
    return ffi::Error::InvalidArgument("a wrong pair of shapes or a wrong motor");
  }
  const int observation = s.num_layers ? s.layers[0] : 0;
  if (s.num_layers < 2 || s.layers[s.num_layers - 1] != m.motors || s.activation == kNumActivations) {
    return ffi::Error::InvalidArgument("layers: they do not fit the motors, or an unknown activation");
  }
  if (s.steps < 1 || m.substeps < 1 || !within(s.observed, observation, 0, values) ||
      !within(s.bounded, s.bounds, 0, values) || !within(s.foot_links, s.feet, 0, m.links)) {
    return ffi::Error::InvalidArgument("a wrong episode");
  }
  return ffi::Error::Success();
}

// The outputs of a record
struct Record {
  float *observations, *actions, *rewards;
  bool* ends;
  float *q, *positions, *rotations;
};

// Runs the episodes of a call. Dimensions before the last two come from `jax.vmap`: they are groups of episodes.
ffi::Error run(ffi::ThreadPool& pool, const ffi::Dictionary& given, Floats genotypes, Floats starts, float* fitness,
               float* descriptor, int32_t* length, const Record& record) {
  Model model{};
  Episode episode{};
  Reader reader(given);
  read_model(reader, model);
  read_episode(reader, model, episode);
  int32_t group = 0;
  reader.number("group", group);
  if (ffi::Error error = reader.finish(); error.failure()) return error;
  if (ffi::Error error = check(model, episode); error.failure()) return error;
  const int64_t count = int64_t(genotypes.element_count()) / episode.params;
  const int64_t row = 13 * model.links + episode.layers[0];
  if (genotypes.dimensions().back() != episode.params || starts.dimensions().back() != row) {
    return ffi::Error::InvalidArgument("genotypes or starts: they do not fit the layers and links");
  }
  const int64_t begins = int64_t(starts.element_count()) / row;
  if (count == 0) return ffi::Error::Success();
  if (begins == 0 || count % begins != 0) return ffi::Error::InvalidArgument("starts: they do not fit the genotypes");
  const int lanes = JEDAX_CHOSEN(control::lanes)();
  Work work{};
  work.model = &model;
  work.episode = &episode;
  work.genotypes = genotypes.typed_data();
  work.starts = starts.typed_data();
  work.starts_row = row;
  work.sharing = count / begins;
  work.group = group > 0 ? std::min<int>(group, lanes) : lanes;
  work.fitness = fitness;
  work.descriptor = descriptor;
  work.length = length;
  work.observations = record.observations;
  work.actions = record.actions;
  work.rewards = record.rewards;
  work.ends = record.ends;
  work.q = record.q;
  work.positions = record.positions;
  work.rotations = record.rotations;
  const auto simulate = JEDAX_CHOSEN(control::run_episodes);
  run_on_threads(pool, count, 1, [&](Queue& queue) {
    Work here = work;
    here.queue = &queue;
    simulate(here);
  });
  return ffi::Error::Success();
}

ffi::Error evaluate(ffi::ThreadPool pool, ffi::Dictionary settings, Floats genotypes, Floats starts,
                    ffi::Result<Floats> fitness, ffi::Result<Floats> descriptor, ffi::Result<Ints> length) {
  return run(pool, settings, genotypes, starts, fitness->typed_data(), descriptor->typed_data(), length->typed_data(), {});
}

template <class T>
auto wanted(ffi::Result<T>& output) {
  return output->element_count() ? output->typed_data() : nullptr;
}

// As `evaluate`, with a row for each step; outputs without elements are not wanted.
ffi::Error record(ffi::ThreadPool pool, ffi::Dictionary settings, Floats genotypes, Floats starts,
                  ffi::Result<Floats> fitness, ffi::Result<Floats> descriptor, ffi::Result<Ints> length,
                  ffi::Result<Floats> observations, ffi::Result<Floats> actions, ffi::Result<Floats> rewards,
                  ffi::Result<Bools> ends, ffi::Result<Floats> q, ffi::Result<Floats> positions,
                  ffi::Result<Floats> rotations) {
  const Record rows{wanted(observations), wanted(actions), wanted(rewards), wanted(ends),
                    wanted(q), wanted(positions), wanted(rotations)};
  return run(pool, settings, genotypes, starts, fitness->typed_data(), descriptor->typed_data(), length->typed_data(), rows);
}

auto inputs() { return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attrs().Arg<Floats>().Arg<Floats>(); }
auto outputs() { return inputs().Ret<Floats>().Ret<Floats>().Ret<Ints>(); }

}  // namespace
}  // namespace control
}  // namespace jedax

JEDAX_HANDLER(jedax_control_evaluate, jedax::control::evaluate, jedax::control::outputs())
JEDAX_HANDLER(jedax_control_record, jedax::control::record,
              jedax::control::outputs()
                  .Ret<jedax::Floats>().Ret<jedax::Floats>().Ret<jedax::Floats>().Ret<jedax::Bools>()
                  .Ret<jedax::Floats>().Ret<jedax::Floats>().Ret<jedax::Floats>())
