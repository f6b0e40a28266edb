// The functions that XLA calls. Dimensions before those named come from `jax.vmap`: they are strategies.

#include "core/ffi.h"
#include "core/threads.h"
#include "es/es.h"

namespace jedax {
namespace es {
namespace {

ffi::Error sample(ffi::ThreadPool pool, Words keys, Floats mean, Floats sigma, Floats directions, Floats gram,
                  Floats rates, ffi::Result<Floats> genotypes) {
  const auto shape = directions.dimensions();
  const auto sampled = genotypes->dimensions();
  Samples work{int64_t(sigma.element_count()), sampled[sampled.size() - 2], shape[shape.size() - 2],
               shape[shape.size() - 1], keys.typed_data(), mean.typed_data(), sigma.typed_data(),
               directions.typed_data(), gram.typed_data(), rates.typed_data(), genotypes->typed_data()};
  const int64_t s = work.strategies, m = work.m, n = work.n;
  if (int64_t(keys.element_count()) != 2 * s || int64_t(mean.element_count()) != s * n ||
      int64_t(gram.element_count()) != s * m * m || int64_t(rates.element_count()) != s * m ||
      int64_t(genotypes->element_count()) != s * work.population * n) {
    return ffi::Error::InvalidArgument("shapes that do not fit each other");
  }
  return run_on_threads(pool, s * groups(work.population, kMembers), 1,
                        [&](Queue& queue) { JEDAX_CHOSEN(es::draw)(work, queue); });
}

ffi::Error normal(ffi::ThreadPool pool, Words keys, ffi::Result<Floats> numbers) {
  const int64_t all = int64_t(keys.element_count()) / 2, count = all ? int64_t(numbers->element_count()) / all : 0;
  Normals work{count, keys.typed_data(), numbers->typed_data()};
  return run_on_threads(pool, all * groups(count, kChunk), 16,
                        [&](Queue& queue) { JEDAX_CHOSEN(es::draw_normals)(work, queue); });
}

ffi::Error recombine(ffi::ThreadPool pool, Floats weights, Floats genotypes, Floats mean, ffi::Result<Floats> sums) {
  const auto shape = genotypes.dimensions();
  const int64_t population = shape[shape.size() - 2], n = shape[shape.size() - 1];
  const int64_t strategies = population ? int64_t(weights.element_count()) / population : 0;
  if (int64_t(genotypes.element_count()) != strategies * population * n ||
      int64_t(mean.element_count()) != strategies * n) {
    return ffi::Error::InvalidArgument("shapes that do not fit each other");
  }
  Sums work{population, n, weights.typed_data(), genotypes.typed_data(), mean.typed_data(), sums->typed_data()};
  return run_on_threads(pool, strategies * groups(n, kChunk), 1,
                        [&](Queue& queue) { JEDAX_CHOSEN(es::add_up)(work, queue); });
}

}  // namespace
}  // namespace es
}  // namespace jedax

JEDAX_HANDLER(jedax_es_sample, jedax::es::sample,
              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<jedax::Words>().Arg<jedax::Floats>().Arg<jedax::Floats>()
                  .Arg<jedax::Floats>().Arg<jedax::Floats>().Arg<jedax::Floats>().Ret<jedax::Floats>())
JEDAX_HANDLER(jedax_es_normal, jedax::es::normal,
              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<jedax::Words>().Ret<jedax::Floats>())
JEDAX_HANDLER(jedax_es_recombine, jedax::es::recombine,
              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<jedax::Floats>().Arg<jedax::Floats>().Arg<jedax::Floats>()
                  .Ret<jedax::Floats>())
