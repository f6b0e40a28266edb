// Chooses the kernels for this processor.
#pragma once

#include "maze.h"

namespace jedax {

// The kernels of the instruction set of this name; of the best one this processor has where it is null or empty. Null
// where the library or the processor has none of that name.
const Kernels* kernels(const char* name);

// The names of those this processor can run, the best first, comma between them.
const char* instruction_sets();

}  // namespace jedax
