// The functions that XLA calls: they read and check the settings, and share the episodes between threads.

#include <algorithm>
#include <string_view>

#include "control/fitting.h"
#include "control/settings.h"
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

  int choice(const char* name, const char* const* names, int count) {
    std::string_view given;
    attributes_.read(name, given);
    return int(std::find(names, names + count, given) - names);
  }

 private:
  Attributes attributes_;
  const char* wrong_ = nullptr;
};

// Runs the episodes of a call; `work` has its outputs. Dimensions before the last two come from `jax.vmap`: they are
// groups of episodes.
ffi::Error run(ffi::ThreadPool& pool, const ffi::Dictionary& given, Floats genotypes, Floats starts, Work work) {
  Model model{};
  Episode episode{};
  Reader reader(given);
  read_model(reader, model);
  read_episode(reader, model, episode);
  int32_t group = 0;
  reader.number("group", group);
  if (ffi::Error error = reader.finish(); error.failure()) return error;
  if (const char* wrong = check(model, episode)) return ffi::Error::InvalidArgument(wrong);
  const int64_t count = int64_t(genotypes.element_count()) / episode.params;
  const int64_t row = 13 * model.links + episode.layers[0];
  if (genotypes.dimensions().back() != episode.params || starts.dimensions().back() != row) {
    return ffi::Error::InvalidArgument("genotypes or starts: they do not fit the layers and links");
  }
  const int64_t begins = int64_t(starts.element_count()) / row;
  if (count == 0) return ffi::Error::Success();
  if (begins == 0 || count % begins != 0) return ffi::Error::InvalidArgument("starts: they do not fit the genotypes");
  const int lanes = JEDAX_CHOSEN(control::lanes)();
  work.model = &model;
  work.episode = &episode;
  work.genotypes = genotypes.typed_data();
  work.starts = starts.typed_data();
  work.starts_row = row;
  work.sharing = count / begins;
  work.group = group > 0 ? std::min<int>(lanes, group) : fitting(episode, lanes);
  const auto simulate = JEDAX_CHOSEN(control::run_episodes);
  return run_on_threads(pool, count, 1, [&](Queue& queue) {
    Work here = work;
    here.queue = &queue;
    simulate(here);
  });
}

template <class T>
auto wanted(ffi::Result<T>& output) {
  return output->element_count() ? output->typed_data() : nullptr;
}

Work outcome(ffi::Result<Floats>& fitness, ffi::Result<Floats>& descriptor, ffi::Result<Ints>& length) {
  Work work{};
  work.fitness = fitness->typed_data();
  work.descriptor = descriptor->typed_data();
  work.length = length->typed_data();
  return work;
}

ffi::Error evaluate(ffi::ThreadPool pool, ffi::Dictionary settings, Floats genotypes, Floats starts,
                    ffi::Result<Floats> fitness, ffi::Result<Floats> descriptor, ffi::Result<Ints> length) {
  return run(pool, settings, genotypes, starts, outcome(fitness, descriptor, length));
}

// As `evaluate`, with a row for each step; outputs without elements are not wanted.
ffi::Error record(ffi::ThreadPool pool, ffi::Dictionary settings, Floats genotypes, Floats starts,
                  ffi::Result<Floats> fitness, ffi::Result<Floats> descriptor, ffi::Result<Ints> length,
                  ffi::Result<Floats> observations, ffi::Result<Floats> actions, ffi::Result<Floats> rewards,
                  ffi::Result<Bools> ends, ffi::Result<Floats> q, ffi::Result<Floats> positions,
                  ffi::Result<Floats> rotations) {
  Work work = outcome(fitness, descriptor, length);
  work.observations = wanted(observations);
  work.actions = wanted(actions);
  work.rewards = wanted(rewards);
  work.ends = wanted(ends);
  work.q = wanted(q);
  work.positions = wanted(positions);
  work.rotations = wanted(rotations);
  return run(pool, settings, genotypes, starts, work);
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
