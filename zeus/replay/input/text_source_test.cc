#include "zeus/replay/input/text_source.h"

#include <gmock/gmock.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::replay {
namespace text_source_test {

using ::testing::HasSubstr;

std::string Xz(const std::string& text) {
  std::string packed(text.size() + 1024, '\0');
  std::size_t size = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(
                6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  return packed;
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string Zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// Makes more than a block of lines whose ends do not coincide with those of blocks.
std::string LongText() {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  return text;
}

Result<std::string> ReadAll(TextSource source) {
  std::string all;
  while (true) {
    ZEUS_TRY(const std::string_view lines, source.NextLines());
    if (lines.empty()) return all;
    EXPECT_TRUE(all.empty() || all.back() == '\n') << "a line in two blocks";
    all += lines;
  }
}

using Pack = std::string (*)(const std::string&);

std::string Plain(const std::string& text) { return text; }

struct PackingCase {
  const char* name;
  Pack pack;
};

class TextSourceTest : public ::testing::TestWithParam<PackingCase> {
 protected:
  Result<std::string> Read(const std::string& content) {
    // The file name does not reveal the compression; the content does.
    ZEUS_TRY(TextSource source, TextSource::Open(directory_.AddFile("trace.csv", content)));
    return ReadAll(std::move(source));
  }
  std::string Packed(const std::string& text) const { return GetParam().pack(text); }

  zeus::testing::TemporaryDirectory directory_;
};

TEST_P(TextSourceTest, GivesBackTheText) {
  const std::string text = LongText();
  EXPECT_EQ(Read(Packed(text)).value(), text);
}

TEST_P(TextSourceTest, AnEmptyTextHasNoLines) { EXPECT_EQ(Read(Packed("")).value(), ""); }

TEST_P(TextSourceTest, TwoFilesOneAfterTheOtherAreOne) {
  EXPECT_EQ(Read(Packed("a\n") + Packed("b\n")).value(), "a\nb\n");
}

class PackedTextTest : public TextSourceTest {};

TEST_P(PackedTextTest, APackedFileThatWasCutOffIsRefusedByName) {
  const std::string packed = Packed(LongText());
  for (const std::size_t missing : {std::size_t{1}, std::size_t{20}, packed.size() / 2}) {
    const auto text = Read(packed.substr(0, packed.size() - missing));
    ASSERT_FALSE(text.ok()) << missing;
    EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(text.error().message, HasSubstr("trace.csv: the packed data end too early"));
  }
}

TEST_P(PackedTextTest, DamageIsRefusedByName) {
  std::string packed = Packed(LongText());
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 40; ++i) packed[i] ^= 0x5a;
  const auto text = Read(packed);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(text.error().message, HasSubstr("damaged"));
}

const auto kPacked = ::testing::Values(PackingCase{"Xz", &Xz}, PackingCase{"Gzip", &Gzip},
                                       PackingCase{"Zstd", &Zstd});
const auto kName = [](const auto& tested) { return std::string(tested.param.name); };

INSTANTIATE_TEST_SUITE_P(Plain, TextSourceTest, ::testing::Values(PackingCase{"Csv", &Plain}),
                         kName);
INSTANTIATE_TEST_SUITE_P(Packed, TextSourceTest, kPacked, kName);
INSTANTIATE_TEST_SUITE_P(Packed, PackedTextTest, kPacked, kName);

TEST(PlainTextTest, TheLastLineNeedsNoEnd) {
  EXPECT_EQ(ReadAll(TextSource("memory", ReadFromMemory("a\nb"))).value(), "a\nb");
}

TEST(PlainTextTest, ALineLongerThanABlockIsWhole) {
  const std::string text = std::string(1000000, 'x') + "\nshort\n";
  TextSource source("memory", ReadFromMemory(text));
  const auto lines = source.NextLines();
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(lines.value().find('\n'), 1000000U);
}

TEST(PlainTextTest, WhatNeverEndsALineIsNoText) {
  TextSource source("zeros", ReadFromMemory(std::string(std::size_t{17} * 1024 * 1024, '\0')));
  EXPECT_THAT(source.NextLines().error().message, HasSubstr("zeros: a line of more than 16 MB"));
}

TEST(PlainTextTest, AMissingFileIsNotFound) {
  EXPECT_EQ(TextSource::Open("absent.csv").error().code, ErrorCode::kNotFound);
}

}  // namespace text_source_test
}  // namespace zeus::replay
