// Episodes of many robots at once, one robot to a lane.
//
// A robot's result does not depend on its lane, its neighbours or the number of threads: lanes never mix, and the
// compiler may not contract or reorder floating point operations.

#include "maze/evaluate.h"
#include "maze/record.h"

namespace jedax {

template <>
void evaluate<JEDAX_ISA>(const Work& work) {
  const FlushSmallNumbers flush;
  const Settings& s = *work.settings;
  if (s.lasers == 3 && s.num_layers == 3 && s.layers[1] == 8) return evaluate_sizes<3, 8>(work);
  evaluate_sizes<0, 0>(work);
}

template <>
void record<JEDAX_ISA>(const Work& work) {
  const FlushSmallNumbers flush;
  record_all(work);
}

template <>
int width<JEDAX_ISA>() {
  return kWidth;
}

}  // namespace jedax
