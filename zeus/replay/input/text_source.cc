#include "zeus/replay/input/text_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "zeus/base/text.h"

namespace zeus::replay {
namespace {

constexpr std::size_t kBlock =
    std::size_t{256} * 1024;  // Small enough to stay in the cache of a core.
constexpr std::size_t kLongestLine = std::size_t{16} * 1024 * 1024;

}  // namespace

Result<TextSource> TextSource::Open(const std::filesystem::path& path) {
  ZEUS_TRY(std::unique_ptr<ByteSource> bytes, OpenFile(path));
  return TextSource(Printable(path.string()), std::move(bytes));
}

TextSource::TextSource(std::string name, std::unique_ptr<ByteSource> bytes)
    : name_(std::move(name)), bytes_(std::move(bytes)), block_(kBlock) {}

Result<std::string_view> TextSource::NextLines() {
  std::copy(block_.begin() + static_cast<std::ptrdiff_t>(given_),
            block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.begin());
  filled_ -= std::exchange(given_, 0);
  while (true) {
    if (filled_ == block_.size()) {
      if (filled_ >= kLongestLine)
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{}: a line of more than 16 MB: this is no text", name_)};
      block_.resize(2 * block_.size());
    }
    ZEUS_TRY(const std::size_t got, bytes_->Read(std::span(block_).subspan(filled_)));
    const std::string_view fresh(block_.data() + filled_, got);
    filled_ += got;
    bytes_read_ += static_cast<std::int64_t>(got);
    if (got == 0) {
      given_ = filled_;
    } else if (const std::size_t end = fresh.rfind('\n'); end != std::string_view::npos) {
      given_ = filled_ - (got - end - 1);
    } else {
      continue;
    }
    return std::string_view(block_.data(), given_);
  }
}

}  // namespace zeus::replay
