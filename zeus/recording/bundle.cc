#include "zeus/recording/bundle.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <string_view>

#include "zeus/base/file.h"

namespace zeus::recording {
namespace {

constexpr std::size_t kBlock = 512;

// A header of POSIX.1-1988 ("ustar"). Numbers are octal texts.
struct TarHeader {
  char name[100];
  char mode[8];
  char user[8];
  char group[8];
  char size[12];
  char time[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[8];
  char rest[247];
};
static_assert(sizeof(TarHeader) == kBlock);

template <std::size_t kSize>
void Put(char (&field)[kSize], std::string_view text) {
  text.substr(0, kSize - 1).copy(field, kSize - 1);
}

std::string Header(const BundleFile& file) {
  TarHeader header{};
  Put(header.name, file.name);
  Put(header.mode, "0000644");
  Put(header.user, "0000000");
  Put(header.group, "0000000");
  Put(header.size, fmt::format("{:011o}", file.content.size()));
  Put(header.time, "00000000000");
  header.type = '0';
  std::memcpy(header.magic, "ustar\00000", sizeof header.magic);
  std::memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  for (std::size_t i = 0; i < sizeof header; ++i)
    sum += reinterpret_cast<const unsigned char*>(&header)[i];
  Put(header.checksum, fmt::format("{:06o}", sum));
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

Result<std::string> Gzip(const std::string& bytes) {
  z_stream stream{};
  constexpr int kWindow = 15 + 16;  // zlib.h: 16 makes it a gzip file.
  constexpr int kMemory = 8;
  if (::deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kWindow, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
    return Error{ErrorCode::kInternal, "cannot compress: zlib does not start"};
  std::string packed(::deflateBound(&stream, bytes.size()), '\0');
  // zlib declares its input as writable but does not write to it.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int code = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (code != Z_STREAM_END) return Error{ErrorCode::kInternal, "cannot compress the bundle"};
  return packed;
}

}  // namespace

Status WriteBundle(const std::filesystem::path& path, const std::vector<BundleFile>& files) {
  std::string archive;
  for (const BundleFile& file : files) {
    archive += Header(file) + file.content;
    archive.resize((archive.size() + kBlock - 1) / kBlock * kBlock, '\0');
  }
  archive.append(2 * kBlock, '\0');
  ZEUS_TRY(const std::string packed, Gzip(archive));
  return ReplaceFile(path, packed, Readers::kOwnerOnly);
}

}  // namespace zeus::recording
