#include "zeus/replay/input/byte_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"
#include "zeus/replay/input/unpacking.h"

namespace zeus::replay {
namespace {

class PlainFile final : public ByteSource {
 public:
  explicit PlainFile(std::filesystem::path path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

  bool open() const { return file_.valid(); }

  Result<std::size_t> Read(std::span<char> space) override {
    while (true) {
      const ssize_t got = ::read(file_.get(), space.data(), space.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return FileError(path_, errno);
    }
  }

 private:
  const std::filesystem::path path_;
  const FileDescriptor file_;
};

class Memory final : public ByteSource {
 public:
  explicit Memory(std::string bytes) : bytes_(std::move(bytes)) {}

  Result<std::size_t> Read(std::span<char> space) override {
    const std::size_t size = std::min(space.size(), bytes_.size() - position_);
    std::copy_n(bytes_.data() + position_, size, space.data());
    position_ += size;
    return size;
  }

 private:
  const std::string bytes_;
  std::size_t position_ = 0;
};

// Returns bytes that were read ahead to detect the compression, then the rest.
class Rejoined final : public ByteSource {
 public:
  Rejoined(std::string start, std::unique_ptr<ByteSource> rest)
      : start_(std::move(start)), rest_(std::move(rest)) {}

  Result<std::size_t> Read(std::span<char> space) override {
    ZEUS_TRY(const std::size_t size, start_.Read(space));
    return size > 0 ? Result<std::size_t>(size) : rest_->Read(space);
  }

 private:
  Memory start_;
  std::unique_ptr<ByteSource> rest_;
};

Result<std::string> ReadStart(ByteSource& source, std::size_t wanted) {
  std::string start(wanted, '\0');
  std::size_t size = 0;
  while (size < wanted) {
    ZEUS_TRY(const std::size_t got, source.Read(std::span(start).subspan(size)));
    if (got == 0) break;
    size += got;
  }
  start.resize(size);
  return start;
}

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenFile(const std::filesystem::path& path) {
  auto file = std::make_unique<PlainFile>(path);
  if (!file->open()) return FileError(path, errno);
  ZEUS_TRY(std::string start, ReadStart(*file, kLongestSignature));
  const std::optional<Packing> packing = DetectPacking(start);
  std::unique_ptr<ByteSource> bytes = std::make_unique<Rejoined>(std::move(start), std::move(file));
  if (!packing) return bytes;
  return Unpack(*packing, Printable(path.string()), std::move(bytes));
}

std::unique_ptr<ByteSource> ReadFromMemory(std::string bytes) {
  return std::make_unique<Memory>(std::move(bytes));
}

}  // namespace zeus::replay
