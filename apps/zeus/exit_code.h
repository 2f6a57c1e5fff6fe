#pragma once

#include "zeus/base/result.h"

namespace zeus::cli {

// 1 is left to verbs that answer a question ("no": doctor found nothing, diff found a regression).
// 2 is a wrong command line.
constexpr int ExitCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return 2;
    case ErrorCode::kNotFound:
      return 3;
    case ErrorCode::kNotSupported:
      return 4;
    case ErrorCode::kPermissionDenied:
      return 5;
    case ErrorCode::kUnavailable:
      return 6;
    case ErrorCode::kInternal:
      return 7;
  }
  return 7;
}

}  // namespace zeus::cli
