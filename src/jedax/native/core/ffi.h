// What XLA calls: types of arrays, settings by name, and the definition of handlers.
#pragma once

#include <string>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace jedax {

using Floats = ffi::Buffer<ffi::F32>;
using Ints = ffi::Buffer<ffi::S32>;
using Words = ffi::Buffer<ffi::U32>;
using Bools = ffi::Buffer<ffi::PRED>;

// Reads a call's settings by their names.
class Attributes {
 public:
  explicit Attributes(const ffi::Dictionary& given) : given_(given) {}

  template <class T>
  void read(const char* name, T& to) {
    const auto found = given_.get<T>(name);
    if (found.has_value()) {
      to = *found;
    } else if (error_.success()) {
      error_ = ffi::Error::InvalidArgument(std::string(name) + ": " + found.error().message());
    }
    ++num_read_;
  }

  // Returns the first error; also where a setting was given that nobody reads.
  ffi::Error finish() const {
    if (error_.success() && given_.size() != num_read_) return ffi::Error::InvalidArgument("a setting of unknown name");
    return error_;
  }

 private:
  const ffi::Dictionary given_;
  ffi::Error error_;
  size_t num_read_ = 0;
};

// Defines the function that XLA calls as `jedax_<kernel>_<function>`.
#define JEDAX_HANDLER(name, function, binding)  \
  _Pragma("GCC visibility push(default)")       \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, function, binding); \
  _Pragma("GCC visibility pop")

}  // namespace jedax
