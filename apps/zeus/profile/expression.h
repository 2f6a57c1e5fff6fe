#pragma once

#include <memory>
#include <string>

#include "zeus/base/result.h"

namespace re2 {
class RE2;
}

namespace zeus::cli {

// A user's regular expression for the output of a program, in the syntax of RE2. kInvalidArgument:
// `takes` ("--progress takes …") and what is wrong with it.
Result<std::shared_ptr<const re2::RE2>> CompileExpression(const std::string& expression,
                                                          const char* takes);

}  // namespace zeus::cli
