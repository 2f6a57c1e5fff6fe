#include "zeus/base/shared_library.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus {
namespace shared_library_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// The beginning of a library with one segment to load: `segment_size` bytes from the start.
std::string ElfBeginning(std::uint64_t segment_size) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_filesz = segment_size;
  std::string bytes(sizeof(header) + sizeof(segment), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), &segment, sizeof(segment));
  return bytes;
}

TEST(ElfTest, ALibraryWithAllItsSegmentsIsWhole) {
  EXPECT_FALSE(IsElfCutShort(ElfBeginning(5000), 5000));
  EXPECT_FALSE(IsElfCutShort(ElfBeginning(5000), 6000));
}

TEST(ElfTest, ASegmentBeyondTheEndIsCutShort) {
  EXPECT_TRUE(IsElfCutShort(ElfBeginning(5000), 4999));
  EXPECT_TRUE(IsElfCutShort(ElfBeginning(~0ULL), 5000));
}

TEST(ElfTest, AHeaderThatDoesNotFitIsCutShort) {
  const std::string whole = ElfBeginning(120);
  for (const std::size_t size : {4U, 63U, 64U, 119U})
    EXPECT_TRUE(IsElfCutShort(whole.substr(0, size), size)) << size;
}

TEST(ElfTest, WhatIsNotA64BitElfFileIsLeftToTheLoader) {
  EXPECT_FALSE(IsElfCutShort("", 0));
  EXPECT_FALSE(IsElfCutShort("text", 4));
  std::string old = ElfBeginning(5000);
  old[EI_CLASS] = ELFCLASS32;
  EXPECT_FALSE(IsElfCutShort(old, 120));
  // A program header further back than what was read.
  EXPECT_FALSE(IsElfCutShort(ElfBeginning(5000).substr(0, 80), 120));
}

class SharedLibraryTest : public ::testing::Test {
 protected:
  static Error OpenError(const std::string& path) {
    const auto library = SharedLibrary::Open(path, {});
    EXPECT_FALSE(library.ok());
    return library.ok() ? Error{} : library.error();
  }

  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(SharedLibraryTest, ACutLibraryIsRefusedBeforeItIsMapped) {
  const std::string path = directory_.AddFile("cut.so", ElfBeginning(1 << 20)).string();
  EXPECT_EQ(OpenError(path).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(OpenError(path).message, path + " cannot be loaded as a library: it is cut short");
}

TEST_F(SharedLibraryTest, ADirectoryIsNamedAsSuch) {
  EXPECT_EQ(OpenError(directory_.path().string()).code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(OpenError(directory_.path().string()).message, EndsWith("it is a directory"));
}

TEST_F(SharedLibraryTest, AFifoIsNotWaitedFor) {
  const std::string path = (directory_.path() / "fifo").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(OpenError(path).message, EndsWith("it is not a regular file"));
}

TEST_F(SharedLibraryTest, NamesReachMessagesWithoutControlCharacters) {
  EXPECT_EQ(OpenError("/none\x1b[2J").message, "/none\\x1b[2J not found");
  EXPECT_EQ(OpenError("libnone\n.so").message, "libnone\\x0a.so not found");
  const std::string path = directory_.AddFile("te\nxt.so", "text").string();
  EXPECT_THAT(OpenError(path).message, HasSubstr("te\\x0axt.so cannot be loaded as a library: "));
}

TEST_F(SharedLibraryTest, OfTheUsualPlacesTheMissingOnesAreSkipped) {
  const auto library = SharedLibrary::Open(std::nullopt, {"/nonexistent.so", "libc.so.6"});
  EXPECT_TRUE(library.ok());
}

}  // namespace shared_library_test
}  // namespace zeus
