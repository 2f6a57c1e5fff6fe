#include "apps/zeus/profile/expression.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include "zeus/base/text.h"

namespace zeus::cli {

Result<std::shared_ptr<const re2::RE2>> CompileExpression(const std::string& expression,
                                                          const char* takes) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // Programs print any bytes.
  auto compiled = std::make_shared<const re2::RE2>(expression, options);
  if (compiled->ok()) return compiled;
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}, not {}: {}", takes, Quote(expression),
                                                        Printable(compiled->error()))};
}

}  // namespace zeus::cli
