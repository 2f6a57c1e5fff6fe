#include "zeus/replay/input/text_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/text.h"

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

namespace {

constexpr std::size_t kPackedBlock = std::size_t{256} * 1024;

// The result of one call of a decompression library.
struct Progress {
  std::size_t consumed = 0;
  std::size_t produced = 0;
  bool between_streams = false;  // The compressed bytes may end here.
  const char* damage = nullptr;  // Description of the damage, null if there is none.
};

struct XzStream {
  XzStream() {
    // Limit above the need of any preset of xz (65 MB) and below what a hostile file might demand.
    constexpr std::uint64_t kMemory = std::uint64_t{512} * 1024 * 1024;
    ready = lzma_stream_decoder(&stream, kMemory, LZMA_CONCATENATED) == LZMA_OK;
  }
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;
  ~XzStream() { lzma_end(&stream); }

  Progress Step(std::span<const char> in, std::span<char> out, bool last) {
    stream.next_in = reinterpret_cast<const std::uint8_t*>(in.data());
    stream.avail_in = in.size();
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream, last ? LZMA_FINISH : LZMA_RUN);
    Progress progress{.consumed = in.size() - stream.avail_in,
                      .produced = out.size() - stream.avail_out,
                      .between_streams = code == LZMA_STREAM_END};
    if (code == LZMA_MEMLIMIT_ERROR) {
      progress.damage = "needs more than 512 MB to unpack";
    } else if (code != LZMA_OK && code != LZMA_STREAM_END && code != LZMA_BUF_ERROR) {
      progress.damage = "the xz data are damaged";
    }
    return progress;
  }

  lzma_stream stream = LZMA_STREAM_INIT;
  bool ready = false;
};

struct GzipStream {
  GzipStream() {
    constexpr int kGzipOnly = 16;  // zlib.h: added to the window size, it selects gzip.
    ready = inflateInit2(&stream, MAX_WBITS + kGzipOnly) == Z_OK;
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() { inflateEnd(&stream); }

  Progress Step(std::span<const char> in, std::span<char> out, bool /*last*/) {
    if (ended && !in.empty()) {
      inflateReset(&stream);
      ended = false;
    }
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const std::size_t space = std::min(out.size(), kMost);
    // zlib declares its input as writable but does not write to it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(space);
    const int code = ended ? Z_STREAM_END : inflate(&stream, Z_NO_FLUSH);
    ended = code == Z_STREAM_END;
    return {.consumed = in.size() - stream.avail_in,
            .produced = space - stream.avail_out,
            .between_streams = ended,
            .damage = code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR
                          ? nullptr
                          : "the gzip data are damaged"};
  }

  z_stream stream{};
  bool ready = false;
  bool ended = false;
};

struct ZstdStream {
  ZstdStream() : stream(ZSTD_createDStream()), ready(stream != nullptr) {}
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;
  ~ZstdStream() { ZSTD_freeDStream(stream); }

  Progress Step(std::span<const char> in, std::span<char> out, bool /*last*/) {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t hint = ZSTD_decompressStream(stream, &output, &input);
    const bool failed = ZSTD_isError(hint) != 0;
    // At the end of the input the library asks for the next frame, which says nothing about this
    // one.
    if (input.pos > 0 || output.pos > 0) between = hint == 0;
    return {.consumed = input.pos,
            .produced = output.pos,
            .between_streams = between,
            .damage = failed ? "the zstd data are damaged" : nullptr};
  }

  ZSTD_DStream* stream;
  bool ready;
  bool between = false;
};

template <class Stream>
class Unpacked final : public ByteSource {
 public:
  Unpacked(std::string name, std::unique_ptr<ByteSource> packed)
      : name_(std::move(name)), packed_(std::move(packed)), block_(kPackedBlock) {}

  bool ready() const { return stream_.ready; }

  Result<std::size_t> Read(std::span<char> space) override {
    while (true) {
      if (waiting_.empty() && !exhausted_) {
        ZEUS_TRY(const std::size_t size, packed_->Read(block_));
        waiting_ = std::span(block_).first(size);
        exhausted_ = size == 0;
      }
      const Progress progress = stream_.Step(waiting_, space, exhausted_);
      if (progress.damage != nullptr) return Fail(progress.damage);
      waiting_ = waiting_.subspan(progress.consumed);
      if (progress.produced > 0) return progress.produced;
      if (!exhausted_ || progress.consumed > 0) continue;
      if (progress.between_streams) return std::size_t{0};
      return Fail("the packed data end too early: the file was cut off");
    }
  }

 private:
  Error Fail(std::string_view reason) const {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", name_, reason)};
  }

  const std::string name_;
  std::unique_ptr<ByteSource> packed_;
  std::vector<char> block_;
  std::span<const char> waiting_{};  // The part of the block that is not decompressed yet.
  bool exhausted_ = false;
  Stream stream_{};
};

template <class Stream>
Result<std::unique_ptr<ByteSource>> Make(std::string name, std::unique_ptr<ByteSource> packed) {
  auto unpacked = std::make_unique<Unpacked<Stream>>(name, std::move(packed));
  if (!unpacked->ready())
    return Error{ErrorCode::kUnavailable, name + ": not enough memory to unpack it"};
  return std::unique_ptr<ByteSource>(std::move(unpacked));
}

}  // namespace

std::optional<Packing> DetectPacking(std::string_view start) {
  using namespace std::string_view_literals;
  if (start.starts_with("\xfd\x37zXZ\0"sv)) return Packing::kXz;
  if (start.starts_with("\x1f\x8b"sv)) return Packing::kGzip;
  if (start.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::kZstd;
  return std::nullopt;
}

Result<std::unique_ptr<ByteSource>> Unpack(Packing packing, std::string name,
                                           std::unique_ptr<ByteSource> packed) {
  switch (packing) {
    case Packing::kXz:
      return Make<XzStream>(std::move(name), std::move(packed));
    case Packing::kGzip:
      return Make<GzipStream>(std::move(name), std::move(packed));
    case Packing::kZstd:
      break;
  }
  return Make<ZstdStream>(std::move(name), std::move(packed));
}

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
