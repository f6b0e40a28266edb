// Episodes of many robots at once, one robot to a lane.
//
// A robot's result does not depend on its lane, its neighbours or the number of threads: lanes never mix, and the compiler
// may not contract or reorder floating point operations.

#include "control/episode.h"

namespace jedax {
namespace control {

template <>
void run_episodes<JEDAX_ISA>(const Work& work) {
  const FlushSmallNumbers flush;
  run_all(work);
}

template <>
int lanes<JEDAX_ISA>() {
  return kLanes;
}

}  // namespace control
}  // namespace jedax
