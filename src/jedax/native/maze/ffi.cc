// The functions that XLA calls: they read and check the settings, and share the robots between threads.

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/activations.h"
#include "core/ffi.h"
#include "core/threads.h"
#include "maze/maze.h"
#include "maze/walls.h"

namespace jedax {
namespace {

ffi::Error read(const ffi::Dictionary& given, Settings& s) {
  Attributes attributes(given);
#define READ(name) attributes.read(#name, s.name)
  READ(steps);
  READ(start_x), READ(start_y), READ(start_cos), READ(start_sin);
  READ(target_x), READ(target_y), READ(target_radius_squared), READ(distance_weight);
  READ(robot_radius_squared), READ(wheel_speed), READ(turn);
  READ(laser_range), READ(out_of_range), READ(laser_noise), READ(wheel_noise);
#undef READ
  ffi::Span<const float> laser_cos, laser_sin;
  ffi::Span<const int32_t> layers;
  std::string_view activation;
  attributes.read("laser_cos", laser_cos);
  attributes.read("laser_sin", laser_sin);
  attributes.read("layers", layers);
  attributes.read("activation", activation);
  if (ffi::Error error = attributes.finish(); error.failure()) return error;
  s.laser_cos = laser_cos.begin();
  s.laser_sin = laser_sin.begin();
  s.lasers = int(laser_cos.size());
  s.activation = int(std::find(kActivationNames, kActivationNames + kNumActivations, activation) - kActivationNames);
  s.layers = layers.begin();
  s.num_layers = int(layers.size());
  s.largest = 2 * s.wheel_speed * s.turn;
  if (s.steps < 1) return ffi::Error::InvalidArgument("steps: fewer than one");
  if (s.activation == kNumActivations) return ffi::Error::InvalidArgument("activation: an unknown name");
  if (s.lasers < 1 || laser_sin.size() != laser_cos.size() || layers.size() < 2 || layers[0] != s.lasers + 2 ||
      layers.back() != 2) {
    return ffi::Error::InvalidArgument("layers: they do not fit the lasers, the bumpers and the wheels");
  }
  s.params = 0;
  for (int i = 0; i + 1 < s.num_layers; ++i) s.params += (s.layers[i] + 1) * s.layers[i + 1];
  return ffi::Error::Success();
}

// Runs the robots of a call. Dimensions before the last two come from `jax.vmap`: they are groups of robots, all in the
// same walls.
ffi::Error run(ffi::ThreadPool& pool, const ffi::Dictionary& given, Floats genotypes, Floats segments,
               Floats laser_noise, Floats wheel_noise, bool records, Work work) {
  Settings settings;
  if (ffi::Error error = read(given, settings); error.failure()) return error;
  const int64_t params = genotypes.dimensions().back();
  if (params != settings.params) return ffi::Error::InvalidArgument("genotypes: they do not fit the layers");
  const int64_t robots = int64_t(genotypes.element_count()) / params;
  if (robots == 0) return ffi::Error::Success();
  const int64_t of_lasers = robots * (settings.steps + 1) * settings.lasers, of_wheels = robots * settings.steps * 2;
  if ((laser_noise.element_count() > 0 && int64_t(laser_noise.element_count()) != of_lasers) ||
      (wheel_noise.element_count() > 0 && int64_t(wheel_noise.element_count()) != of_wheels)) {
    return ffi::Error::InvalidArgument("noise: it does not fit the genotypes and steps");
  }
  const int64_t num_walls = segments.dimensions()[segments.dimensions().size() - 2], floats = 4 * num_walls;
  const float* first = segments.typed_data();
  for (int64_t i = floats; i < int64_t(segments.element_count()); i += floats) {
    if (std::memcmp(first, first + i, floats * sizeof(float)) != 0) {
      return ffi::Error::InvalidArgument("walls: replicas must have the same ones");
    }
  }
  const WallList walls(first, num_walls, !records);
  work.settings = &settings;
  work.walls = &walls.walls();
  work.genotypes = genotypes.typed_data();
  if (laser_noise.element_count() > 0) work.laser_noise = laser_noise.typed_data();
  if (wheel_noise.element_count() > 0) work.wheel_noise = wheel_noise.typed_data();
  const auto simulate = records ? JEDAX_CHOSEN(record) : JEDAX_CHOSEN(evaluate);
  return run_on_threads(pool, robots, JEDAX_CHOSEN(width)(), [&](Queue& queue) {
    Work here = work;
    here.queue = &queue;
    simulate(here);
  });
}

ffi::Error evaluate_batch(ffi::ThreadPool pool, ffi::Dictionary settings, Floats genotypes, Floats walls,
                          Floats laser_noise, Floats wheel_noise, ffi::Result<Floats> fitness,
                          ffi::Result<Floats> descriptor) {
  Work work{};
  work.fitness = fitness->typed_data();
  work.descriptor = descriptor->typed_data();
  return run(pool, settings, genotypes, walls, laser_noise, wheel_noise, false, work);
}

ffi::Error record_batch(ffi::ThreadPool pool, ffi::Dictionary settings, Floats genotypes, Floats walls,
                        Floats laser_noise, Floats wheel_noise, ffi::Result<Floats> observations,
                        ffi::Result<Floats> actions, ffi::Result<Floats> positions, ffi::Result<Ints> length) {
  Work work{};
  work.observations = observations->typed_data();
  work.actions = actions->typed_data();
  work.positions = positions->typed_data();
  work.length = length->typed_data();
  return run(pool, settings, genotypes, walls, laser_noise, wheel_noise, true, work);
}

auto inputs() {
  return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Attrs().Arg<Floats>().Arg<Floats>().Arg<Floats>().Arg<Floats>();
}

}  // namespace
}  // namespace jedax

JEDAX_HANDLER(jedax_maze_evaluate, jedax::evaluate_batch, jedax::inputs().Ret<jedax::Floats>().Ret<jedax::Floats>())
JEDAX_HANDLER(jedax_maze_record, jedax::record_batch,
              jedax::inputs().Ret<jedax::Floats>().Ret<jedax::Floats>().Ret<jedax::Floats>().Ret<jedax::Ints>())
