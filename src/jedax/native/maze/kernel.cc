// Episodes of many robots at once, one robot to a lane. Compiled once for each instruction set, as JEDAX_KERNELS.
//
// No robot's result depends on its lane, on its neighbours or on the number of threads: lanes never mix, and the
// compiler may not contract or reorder floating point operations.

#include "evaluate.h"
#include "record.h"

namespace jedax {
namespace {

void evaluate(Work* work) {
  const FlushSmallNumbers flush;
  const Settings& s = *work->settings;
  if (s.lasers == 3 && s.num_layers == 3 && s.layers[1] == 8) return evaluate_sizes<3, 8>(*work);
  evaluate_sizes<0, 0>(*work);
}

}  // namespace

extern const Kernels JEDAX_KERNELS = {JEDAX_NAME, kWidth, evaluate, record};

}  // namespace jedax
