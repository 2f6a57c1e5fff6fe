#include "zeus/c/boundary.h"

#include <string>

namespace zeus::c {
namespace {

thread_local std::string last_error;

}  // namespace

zeus_status ToStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kConflict:
      return ZEUS_INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return ZEUS_NOT_FOUND;
    case ErrorCode::kNotSupported:
      return ZEUS_NOT_SUPPORTED;
    case ErrorCode::kPermissionDenied:
      return ZEUS_PERMISSION_DENIED;
    case ErrorCode::kUnavailable:
      return ZEUS_UNAVAILABLE;
    case ErrorCode::kInternal:
      return ZEUS_INTERNAL;
  }
  return ZEUS_INTERNAL;
}

zeus_status Fail(const Error& error) {
  try {
    last_error = error.message;
  } catch (const std::bad_alloc&) {
    last_error.clear();
  }
  return ToStatus(error.code);
}

}  // namespace zeus::c

extern "C" {

uint32_t zeus_api_version(void) { return ZEUS_API_VERSION; }

const char* zeus_last_error(void) { return zeus::c::last_error.c_str(); }

const char* zeus_status_name(zeus_status status) {
  switch (status) {
    case ZEUS_OK:
      return "ok";
    case ZEUS_INVALID_ARGUMENT:
      return "invalid argument";
    case ZEUS_NOT_FOUND:
      return "not found";
    case ZEUS_NOT_SUPPORTED:
      return "not supported";
    case ZEUS_PERMISSION_DENIED:
      return "permission denied";
    case ZEUS_UNAVAILABLE:
      return "unavailable";
    case ZEUS_INTERNAL:
      return "internal error";
    default:
      return "unknown status";
  }
}

}  // extern "C"
