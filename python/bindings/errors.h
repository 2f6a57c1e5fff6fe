#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <string>
#include <utility>

#include "zeus/base/result.h"

namespace zeus::python {

// The family of exceptions that an error becomes: zeus.errors has a table for each.
enum class Family { kGeneral, kGpu, kCpu };

// Carries an Error to Python, where it becomes one of the exceptions of zeus.errors.
class Failure final : public std::exception {
 public:
  explicit Failure(Error error, Family family = Family::kGeneral)
      : error_(std::move(error)), family_(family) {}

  const char* what() const noexcept override { return error_.message.c_str(); }
  const Error& error() const { return error_; }
  Family family() const { return family_; }

 private:
  Error error_;
  Family family_;
};

// Returns the value, or throws the error as a Failure.
template <class T>
T Unwrap(Result<T> result, Family family = Family::kGeneral) {
  if (!result.ok()) throw Failure(std::move(result).error(), family);
  return std::move(result).value();
}

inline void Check(const Status& status, Family family = Family::kGeneral) {
  if (!status.ok()) throw Failure(status.error(), family);
}

// Returns the exception of zeus.errors for an error. The GIL must be held.
pybind11::object MakeException(const Error& error, Family family = Family::kGeneral);

// Converts the current Python exception to an error, for C++ code that continues. The GIL must be
// held.
Error CurrentPythonError(std::string_view doing);

}  // namespace zeus::python
