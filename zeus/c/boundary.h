#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "zeus/base/result.h"
#include "zeus/c/zeus.h"

// Helpers for the boundary of every function of the C interface: exceptions become status codes,
// error messages are kept for zeus_last_error(), and structures of callers that were compiled with
// an older or newer header are understood.
namespace zeus::c {

// Remembers the message for zeus_last_error(), and returns the status of the error.
zeus_status Fail(const Error& error);
zeus_status ToStatus(ErrorCode code);

template <class Body>
zeus_status Guard(Body&& body) noexcept {
  try {
    const Status status = std::forward<Body>(body)();
    return status.ok() ? ZEUS_OK : Fail(status.error());
  } catch (const std::bad_alloc&) {
    return Fail({ErrorCode::kUnavailable, "out of memory"});
  } catch (const std::exception& failure) {
    return Fail({ErrorCode::kInternal, failure.what()});
  } catch (...) {
    return Fail({ErrorCode::kInternal, "something was thrown that is not an exception"});
  }
}

template <class T>
Status CheckGiven(const T* argument, const char* name) {
  if (argument != nullptr) return Ok();
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} is NULL", name)};
}

// A caller that was compiled with a newer header has a longer structure. A size far beyond that is
// an uninitialised field.
template <class T>
Status CheckSize(std::size_t size, const char* name) {
  constexpr std::size_t kLargest = sizeof(T) + 1024;
  if (size >= sizeof(T) && size <= kLargest) return Ok();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("struct_size of {} is {}: set it to sizeof({})", name, size, name)};
}

template <class T>
Status CheckStruct(const T* given, const char* name) {
  static_assert(std::is_trivially_copyable_v<T>);
  ZEUS_RETURN_IF_ERROR(CheckGiven(given, name));
  return CheckSize<T>(given->struct_size, name);
}

// Reads a caller's structure. Fields that this library does not know must be zero, because it could
// not do what they ask for.
template <class T>
Result<T> ReadStruct(const T* given, const char* name) {
  ZEUS_RETURN_IF_ERROR(CheckStruct(given, name));
  const auto* bytes = reinterpret_cast<const char*>(given);
  if (std::any_of(bytes + sizeof(T), bytes + given->struct_size, [](char c) { return c != 0; }))
    return Error{ErrorCode::kNotSupported,
                 fmt::format("{} has fields that this version of Zeus does not know", name)};
  return *given;
}

// Writes to a caller's structure, after CheckStruct(). Fields that this library does not know
// become zero.
template <class T>
void WriteStruct(T value, T* out) {
  const std::size_t size = out->struct_size;
  value.struct_size = size;
  std::memcpy(static_cast<void*>(out), &value, sizeof(T));
  std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, size - sizeof(T));
}

}  // namespace zeus::c
