#pragma once

#include "zeus/base/result.h"

namespace zeus::cli {

// 1 is reserved for verbs that answer a question with "no": doctor found nothing, diff found a
// regression. 2 is a wrong command line.
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
    case ErrorCode::kConflict:  // 8 is taken, see below.
      return 9;
  }
  return 7;
}

// `zeus diff` answers "undecided" with 2, so a wrong command line or file is 8 there.
constexpr int DiffExitCode(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument ? 8 : ExitCode(code);
}

}  // namespace zeus::cli
