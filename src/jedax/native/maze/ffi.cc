// The handlers that XLA calls.

#include <cstdlib>

#include "batch.h"
#include "dispatch.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace jedax {
namespace {

using Floats = ffi::Buffer<ffi::F32>;

int64_t product(ffi::Span<const int64_t> dimensions, size_t leave_out) {
  int64_t all = 1;
  for (size_t i = 0; i + leave_out < dimensions.size(); ++i) all *= dimensions[i];
  return all;
}

// The call without its outputs. Leading dimensions beyond the documented ones come from `jax.vmap`: they are groups.
Call describe(Floats& genotypes, Floats& walls, Floats& laser_noise, Floats& wheel_noise,
              ffi::Span<const float> numbers, ffi::Span<const int32_t> sizes) {
  const auto shape = genotypes.dimensions();
  Call call{};
  call.numbers = numbers.begin();
  call.num_numbers = int64_t(numbers.size());
  call.sizes = sizes.begin();
  call.num_sizes = int64_t(sizes.size());
  call.walls = walls.typed_data();
  call.groups = product(shape, 2);
  call.robots = shape[shape.size() - 2];
  call.params = shape[shape.size() - 1];
  call.num_walls = walls.dimensions()[walls.dimensions().size() - 2];
  call.arrays.genotypes = genotypes.typed_data();
  if (laser_noise.element_count() > 0) call.arrays.laser_noise = laser_noise.typed_data();
  if (wheel_noise.element_count() > 0) call.arrays.wheel_noise = wheel_noise.typed_data();
  return call;
}

ffi::Error run_on(ffi::ThreadPool& pool, const Call& call) {
  static const Kernels* const chosen = kernels(std::getenv("JEDAX_MAZE_ISA"));
  if (chosen == nullptr) return ffi::Error::InvalidArgument("JEDAX_MAZE_ISA names no kernel of this processor");
  const auto schedule = [&pool](std::function<void()> task) { pool.Schedule(std::move(task)); };
  if (const char* wrong = run(*chosen, call, pool.num_threads(), schedule)) return ffi::Error::InvalidArgument(wrong);
  return ffi::Error::Success();
}

ffi::Error evaluate(ffi::ThreadPool pool, Floats genotypes, Floats walls, Floats laser_noise, Floats wheel_noise,
                    ffi::Span<const float> numbers, ffi::Span<const int32_t> sizes, ffi::Result<Floats> fitness,
                    ffi::Result<Floats> descriptor) {
  Call call = describe(genotypes, walls, laser_noise, wheel_noise, numbers, sizes);
  call.arrays.fitness = fitness->typed_data();
  call.arrays.descriptor = descriptor->typed_data();
  return run_on(pool, call);
}

ffi::Error record(ffi::ThreadPool pool, Floats genotypes, Floats walls, Floats laser_noise, Floats wheel_noise,
                  ffi::Span<const float> numbers, ffi::Span<const int32_t> sizes, ffi::Result<Floats> observations,
                  ffi::Result<Floats> actions, ffi::Result<Floats> positions,
                  ffi::Result<ffi::Buffer<ffi::S32>> length) {
  Call call = describe(genotypes, walls, laser_noise, wheel_noise, numbers, sizes);
  call.record = true;
  call.arrays.observations = observations->typed_data();
  call.arrays.actions = actions->typed_data();
  call.arrays.positions = positions->typed_data();
  call.arrays.length = length->typed_data();
  return run_on(pool, call);
}

auto inputs() {
  return ffi::Ffi::Bind()
      .Ctx<ffi::ThreadPool>()
      .Arg<Floats>()
      .Arg<Floats>()
      .Arg<Floats>()
      .Arg<Floats>()
      .Attr<ffi::Span<const float>>("numbers")
      .Attr<ffi::Span<const int32_t>>("sizes");
}

}  // namespace
}  // namespace jedax

#pragma GCC visibility push(default)

XLA_FFI_DEFINE_HANDLER_SYMBOL(jedax_maze_evaluate, jedax::evaluate,
                              jedax::inputs().Ret<jedax::Floats>().Ret<jedax::Floats>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(jedax_maze_record, jedax::record,
                              jedax::inputs()
                                  .Ret<jedax::Floats>()
                                  .Ret<jedax::Floats>()
                                  .Ret<jedax::Floats>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

#pragma GCC visibility pop
