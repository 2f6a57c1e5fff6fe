#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/nvml/nvml_abi.h"
#include "zeus/recording/answers.h"
#include "zeus/recording/identities.h"
#include "zeus/recording/recording_file.h"
#include "zeus/recording/spool.h"
#include "zeus/recording/summary.h"

namespace zeus::recording {
namespace recording_test {
namespace {

using Parts = std::array<std::string, kMaxArguments>;

std::string Bytes(std::uint32_t number) {
  std::string bytes;
  Append(bytes, number);
  return bytes;
}
std::string Bytes64(std::uint64_t number) {
  std::string bytes;
  Append(bytes, number);
  return bytes;
}

std::string EnergyCall(std::uint64_t begin, std::uint32_t device, std::uint64_t energy) {
  std::string call;
  AppendCall({.size = 0,
              .function = *FindFunction("nvmlDeviceGetTotalEnergyConsumption"),
              .thread = 0,
              .code = nvml::kSuccess,
              .duration = 1000,
              .begin = begin},
             Parts{Bytes(device), "\1"}, Parts{"", Bytes64(energy)}, call);
  return call;
}

std::string UuidCall(std::uint32_t device, const std::string& uuid) {
  std::string call;
  AppendCall({.size = 0,
              .function = *FindFunction("nvmlDeviceGetUUID"),
              .thread = 0,
              .code = nvml::kSuccess,
              .duration = 1000,
              .begin = 0},
             Parts{Bytes(device), "\1", ""}, Parts{"", uuid, ""}, call);
  return call;
}

class RecordingTest : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return directory_.path() / "recording"; }

  // The bytes of a recording with one process that made these calls.
  std::string Write(const std::string& calls) {
    const auto writer = RecordingWriter::Create(path(), 1'000'000, false);
    EXPECT_TRUE(writer.ok());
    EXPECT_TRUE(writer.value()->WriteProcess({.number = 0, .parent = 0, .name = "p"}).ok());
    EXPECT_TRUE(writer.value()->WriteCalls(0, calls).ok());
    EXPECT_TRUE(writer.value()->WriteEnd(0).ok());
    return ReadSmallFile(path(), 1 << 24).value();
  }

  static std::string Complaint(const std::string& bytes) {
    const auto recording = ParseRecording(bytes, "r");
    return recording.ok() ? "" : recording.error().message;
  }

  testing::TemporaryDirectory directory_;
};

TEST(SignatureTest, EveryFunctionOfNvmlIsKnown) {
  EXPECT_EQ(Functions().size(), 413U);  // And nvmlErrorString.
  const Function& fields = Functions()[*FindFunction("nvmlDeviceGetFieldValues")];
  ASSERT_EQ(fields.arguments.size(), 3U);
  EXPECT_EQ(fields.arguments[2].kind, Kind::kFields);
  const Function& fabric = Functions()[*FindFunction("nvmlDeviceGetGpuFabricInfo")];
  ASSERT_EQ(fabric.arguments[1].identities.size(), 1U);
  EXPECT_EQ(fabric.arguments[1].identities[0].size, 16U);
  for (const Function& function : Functions())
    EXPECT_LE(function.arguments.size(), kMaxArguments) << function.name;
}

TEST_F(RecordingTest, WhatIsWrittenIsRead) {
  const auto recording =
      ParseRecording(Write(EnergyCall(5, 0, 1000) + EnergyCall(1'000'000'000, 0, 3500)), "r");
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  EXPECT_TRUE(recording.value().whole);
  ASSERT_EQ(recording.value().calls.size(), 2U);
  const Summary summary = Summarise(recording.value());
  ASSERT_EQ(summary.gpus.size(), 1U);
  EXPECT_EQ(summary.gpus[0].energy, Joules(2.5));
}

TEST_F(RecordingTest, TheNearestAnswerInTimeIsFound) {
  const auto recording = ParseRecording(
      Write(EnergyCall(0, 0, 1) + EnergyCall(100, 0, 2) + EnergyCall(200, 0, 3)), "r");
  ASSERT_TRUE(recording.ok());
  const Answers answers(recording.value().calls);
  const Call& first = recording.value().calls[0].call;
  const auto at = [&](std::uint64_t time) {
    const FoundAnswer found = answers.Nearest(first.header.function, first.question, time);
    return found.call == nullptr ? 0 : Load<std::uint64_t>(found.call->outputs[1].data());
  };
  EXPECT_EQ(at(0), 1U);
  EXPECT_EQ(at(140), 2U);
  EXPECT_EQ(at(160), 3U);
  EXPECT_EQ(at(1'000'000), 3U);
}

TEST_F(RecordingTest, EveryCutAndEveryFlippedBitIsSurvived) {
  const std::string whole = Write(EnergyCall(5, 0, 1000) + EnergyCall(6, 0, 3500));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = ParseRecording(whole.substr(0, size), "r");
    EXPECT_FALSE(cut.ok() && cut.value().whole) << size;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    const auto read = ParseRecording(flipped, "r");
    EXPECT_TRUE(read.ok() || !read.error().message.empty());
  }
}

TEST_F(RecordingTest, TimesThatGoBackwardsAreRefused) {
  EXPECT_NE(Complaint(Write(EnergyCall(6, 0, 1) + EnergyCall(5, 0, 2))).find("go backwards"),
            std::string::npos);
}

TEST_F(RecordingTest, AMillionDevicesAreRefused) {
  EXPECT_EQ(Complaint(Write(EnergyCall(0, 1'000'000, 1))),
            "r: it names GPU 1000000: a recording has at most 1024");
}

// A part of a file as an attacker may write it.
std::string MakePart(std::uint32_t kind, std::uint32_t size, const std::string& content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 19));
  std::string part;
  Append(part, kind);
  Append(part, std::uint32_t{0});
  Append(part, static_cast<std::uint32_t>(packed.size()));
  Append(part, size);
  Append(part, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(packed.data()),
                                                  static_cast<uInt>(packed.size()))));
  return part + packed;
}

TEST_F(RecordingTest, AFileThatUnpacksToTooMuchIsRefused) {
  std::string bomb = Write("");
  const std::string end = MakePart(4, 15, R"({"exit_code":0})");
  bomb.resize(bomb.size() - 8);  // It goes on where its end was.
  const auto unfinished = ParseRecording(bomb, "r");
  ASSERT_TRUE(unfinished.ok());
  const auto writer = RecordingWriter::Create(path(), 1, false);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer.value()->WriteProcess({.number = 0, .parent = 0, .name = "p"}).ok());
  bomb = ReadSmallFile(path(), 1 << 24).value();
  const std::string call = UuidCall(0, std::string(kMaxPartSize, '\0'));
  std::string calls;
  while (calls.size() + call.size() < (std::size_t{1} << 20U)) calls += call;
  const std::string part = MakePart(3, static_cast<std::uint32_t>(calls.size()), calls);
  EXPECT_LT(part.size(), 1000U);
  for (int i = 0; i < 140; ++i) bomb += part;
  EXPECT_EQ(Complaint(bomb + end),
            "r: it holds more than 128 MiB, which is more than a recording may");
}

TEST_F(RecordingTest, APartThatLiesAboutItsSizeIsRefused) {
  const std::string magic = Write("").substr(0, 8);
  const std::string zeros(std::size_t{1} << 20U, '\0');
  EXPECT_EQ(Complaint(magic + MakePart(1, 0x7fffffff, zeros)),
            "r: the file is damaged: an impossible size in part 1");
  EXPECT_EQ(Complaint(magic + MakePart(1, 100, zeros)),
            "r: the file is damaged: compressed bytes that cannot be unpacked in part 1");
}

TEST_F(RecordingTest, AWriterStopsBeforeNobodyCanReadTheFile) {
  const auto writer = RecordingWriter::Create(path(), 1, false);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer.value()->WriteProcess({.number = 0, .parent = 0, .name = "p"}).ok());
  const std::string call = UuidCall(0, std::string(kMaxPartSize, '\0'));
  std::string calls;
  for (int i = 0; i < 160; ++i) calls += call;  // 10 MiB
  int writes = 0;
  for (; !writer.value()->full() && writes < 20; ++writes)
    ASSERT_TRUE(writer.value()->WriteCalls(0, calls).ok());
  EXPECT_TRUE(writer.value()->full());
  ASSERT_TRUE(writer.value()->WriteEnd(0).ok());
  const auto recording = ReadRecording(path());
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  EXPECT_EQ(recording.value().calls.size(), 160U * static_cast<unsigned>(writes));
}

TEST_F(RecordingTest, IdentitiesAreReplacedByOthersOfTheirForm) {
  IdentityMask mask(Identities::kHidden, 42);
  const std::string uuid = "GPU-1234abcd-0000-1111-2222-333344445555";
  const std::string hidden = mask.Text(uuid);
  EXPECT_NE(hidden, uuid);
  EXPECT_EQ(hidden.size(), uuid.size());
  EXPECT_EQ(hidden.substr(0, 4), "GPU-");
  EXPECT_EQ(hidden[12], '-');
  EXPECT_EQ(mask.Text(uuid), hidden);
  EXPECT_NE(IdentityMask(Identities::kHidden, 43).Text(uuid), hidden);
  EXPECT_EQ(IdentityMask(Identities::kKept, 42).Text(uuid), uuid);
  EXPECT_EQ(mask.Process(4711), mask.Process(4711));
  EXPECT_EQ(mask.ProcessName("python3"), "program-1");
  EXPECT_EQ(mask.Bytes(std::string(16, '\0')), std::string(16, '\0'));
}

TEST_F(RecordingTest, AConversionHidesUuidsAndCountsGpus) {
  IdentityMask mask(Identities::kHidden, 42);
  CallConverter converter(mask, 100);
  std::string calls;
  converter.Convert(UuidCall(0xdeadbeef, "GPU-abc") + EnergyCall(150, 0xdeadbeef, 7), calls);
  const auto recording = ParseRecording(Write(calls), "r");
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  ASSERT_EQ(recording.value().calls.size(), 2U);
  const Call& uuid = recording.value().calls[0].call;
  EXPECT_EQ(uuid.outputs[1], mask.Text("GPU-abc"));
  EXPECT_EQ(Load<std::uint32_t>(uuid.inputs[0].data()), 0U);
  EXPECT_EQ(recording.value().calls[1].call.header.begin, 50U);
}

TEST_F(RecordingTest, ASpoolSurvivesItsWriter) {
  const auto folder = directory_.path() / "spool";
  auto reader = SpoolReader::Create(folder);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(SpoolReader::Create(folder).error().code, ErrorCode::kConflict);
  const std::string call = EnergyCall(1, 2, 3);
  // The writer is never closed, as after a SIGKILL. NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
  auto* const writer = new SpoolWriter(folder, 77, 0);
  writer->Write(call);
  auto collected = reader.value()->Collect();
  ASSERT_EQ(collected.size(), 1U);
  EXPECT_EQ(collected[0].process, 77U);
  EXPECT_EQ(collected[0].calls, call);
  EXPECT_TRUE(reader.value()->Collect().empty());
  std::size_t written = 0;
  std::size_t read = 0;
  for (; written < 3 * kSegmentSize / call.size(); ++written) writer->Write(call);
  for (const Collected& part : reader.value()->Collect()) read += part.calls.size() / call.size();
  EXPECT_EQ(read, written);
  delete writer;  // NOLINT(cppcoreguidelines-owning-memory)
}

TEST_F(RecordingTest, ParentsComeBeforeTheirChildrenWhateverTheirNumbers) {
  const std::vector<std::vector<std::uint64_t>> families = {{1, 2, 3}, {6, 5, 4}, {8, 9, 7}};
  for (const auto& family : families) {
    auto reader = SpoolReader::Create(directory_.path() / fmt::format("spool-{}", family.front()));
    ASSERT_TRUE(reader.ok());
    std::uint64_t parent = 0;
    for (const std::uint64_t process : family) {
      SpoolWriter(directory_.path() / fmt::format("spool-{}", family.front()), process, parent)
          .Write(EnergyCall(1, 2, 3));
      parent = process;
    }
    std::vector<std::uint64_t> collected;
    for (const Collected& part : reader.value()->Collect()) collected.push_back(part.process);
    EXPECT_EQ(collected, family);
  }
}

TEST_F(RecordingTest, AWriterThatNobodyReadsLosesCallsAndCountsThem) {
  const auto folder = directory_.path() / "spool";
  auto reader = SpoolReader::Create(folder);
  ASSERT_TRUE(reader.ok());
  SpoolWriter writer(folder, 77, 0);
  const std::string call = EnergyCall(1, 2, 3);
  const std::size_t calls = 80 * kSegmentSize / call.size();
  for (std::size_t i = 0; i < calls; ++i) writer.Write(call);
  std::size_t read = 0;
  for (const Collected& part : reader.value()->Collect()) read += part.calls.size() / call.size();
  EXPECT_LT(read, calls);
  for (int i = 0; i < 2000; ++i) writer.Write(call);  // The segments are gone: it goes on.
  std::uint64_t lost = 0;
  for (const Collected& part : reader.value()->Collect()) {
    lost = part.lost;
    read += part.calls.size() / call.size();
  }
  EXPECT_EQ(read + lost, calls + 2000);
}

}  // namespace
}  // namespace recording_test
}  // namespace zeus::recording
