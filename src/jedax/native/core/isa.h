// The choice of an instruction set.
//
// The file `vectors.cc` of a kernel is compiled once for each instruction set, with the macro JEDAX_ISA. Its functions
// are declared as `template <Isa> void f(...)`, defined as `template <> void f<JEDAX_ISA>(...)`, and called as
// `JEDAX_CHOSEN(f)(...)`.
#pragma once

namespace jedax {

enum Isa { kBaseline, kAvx2, kAvx512 };  // each includes those before it

Isa isa();     // the one in use
bool fuses();  // whether the processor, and so XLA's code, computes a * b + c with one rounding

#if defined(JEDAX_X86)
#define JEDAX_CHOSEN(function)                               \
  (jedax::isa() == jedax::kAvx512 ? function<jedax::kAvx512> \
   : jedax::isa() == jedax::kAvx2 ? function<jedax::kAvx2>   \
                                  : function<jedax::kBaseline>)
#else
#define JEDAX_CHOSEN(function) (function<jedax::kBaseline>)
#endif

}  // namespace jedax
