#include "zeus/training/profile_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/optimizer/power_limit/profile.h"

namespace zeus {
namespace profile_folder_test {

using namespace zeus::literals;
using ::testing::HasSubstr;
using ::testing::Not;

WallTime Day(int day) { return WallTime(std::chrono::hours(24 * day)); }

ProfileContext Context() {
  return {.job = "imagenet",
          .batch_size = 256,
          .device_model = "Tesla V100",
          .uuids = {"GPU-1", "GPU-2"},
          .devices = 2,
          .driver = "535.00",
          .date = Day(1)};
}

Profile Measured(ProfileContext context, Watts limit = 200_W) {
  return {
      .context = std::move(context),
      .max_power = 500_W,
      .complete = true,
      .points = {
          {.setting = limit, .steps = 40, .time_per_step = Seconds(0.1), .energy_per_step = 20_J}}};
}

class ProfileFolderTest : public ::testing::Test {
 protected:
  std::optional<Setting> Found(const ProfileContext& context,
                               KnobKind knob = KnobKind::kGpuPowerLimit) {
    const auto profile = folder_.Find(context, knob);
    return profile ? std::optional(profile->points[0].setting) : std::nullopt;
  }

  zeus::testing::TemporaryDirectory directory_;
  ProfileFolder folder_{directory_.path() / "new" / "power"};
};

TEST_F(ProfileFolderTest, WhatIsSavedIsFound) {
  EXPECT_EQ(Found(Context()), std::nullopt);
  const auto file = folder_.Save(Measured(Context()));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_THAT(file.value().filename().string(),
              ::testing::StartsWith("imagenet_256_2xTesla-V100_gpu_power_limit_"));
  ProfileContext later = Context();
  later.date = Day(300);
  later.uuids = {"GPU-2", "GPU-1"};
  EXPECT_EQ(Found(later), Setting(200_W));
}

TEST_F(ProfileFolderTest, ItHoldsForTheSameOnly) {
  ASSERT_TRUE(folder_.Save(Measured(Context())).ok());
  const auto changed = [](auto change) {
    ProfileContext context = Context();
    change(context);
    return context;
  };
  EXPECT_EQ(Found(changed([](auto& context) { context.job = "squad"; })), std::nullopt);
  EXPECT_EQ(Found(changed([](auto& context) { context.batch_size = 128; })), std::nullopt);
  EXPECT_EQ(Found(changed([](auto& context) { context.device_model = "A100"; })), std::nullopt);
  EXPECT_EQ(Found(changed([](auto& context) { context.devices = 4; })), std::nullopt);
  EXPECT_EQ(Found(changed([](auto& context) { context.driver = "550.00"; })), std::nullopt);
  EXPECT_EQ(Found(changed([](auto& context) {
              context.uuids = {"GPU-1", "GPU-3"};
            })),
            std::nullopt);
  EXPECT_EQ(Found(Context(), KnobKind::kGraphicsClock), std::nullopt);
  EXPECT_EQ(Found(Context()), Setting(200_W));
}

TEST_F(ProfileFolderTest, ANewProfileReplacesTheOld) {
  ASSERT_TRUE(folder_.Save(Measured(Context(), 250_W)).ok());
  const auto file = folder_.Save(Measured(Context(), 150_W));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(Found(Context()), Setting(150_W));
  const auto entries = std::filesystem::directory_iterator(file.value().parent_path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(ProfileFolderTest, TheNewestOfSeveralCopiesCounts) {
  for (const int day : {5, 9, 7}) {
    ProfileContext context = Context();
    context.date = Day(day);
    directory_.AddFile("new/power/copy" + std::to_string(day) + ".json",
                       ProfileToJson(Measured(context, Watts(100.0 + day))));
  }
  EXPECT_EQ(Found(Context()), Setting(109_W));
}

TEST_F(ProfileFolderTest, AnyJobNameIsAFileOfItsOwn) {
  const std::vector<std::string> names = {"",
                                          ".",
                                          "..",
                                          "../../etc/passwd",
                                          "a/b",
                                          "a-b",
                                          "a b",
                                          "a\nb",
                                          "x\xFF",
                                          "日本",
                                          "y\0z",
                                          std::string(5000, 'n'),
                                          std::string(5001, 'n')};
  for (std::size_t i = 0; i < names.size(); ++i) {
    ProfileContext context = Context();
    context.job = names[i];
    const auto file = folder_.Save(Measured(context, Watts(100.0 + static_cast<double>(i))));
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file.value().parent_path(), directory_.path() / "new" / "power");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    ProfileContext context = Context();
    context.job = names[i];
    EXPECT_EQ(Found(context), Setting(Watts(100.0 + static_cast<double>(i)))) << i;
  }
}

TEST_F(ProfileFolderTest, DamagedFilesAreNamedOnceAndLeftAlone) {
  const auto file = folder_.Save(Measured(Context()));
  ASSERT_TRUE(file.ok());
  const std::string text = ProfileToJson(Measured(Context()));
  const auto cut = directory_.AddFile("new/power/cut.json", text.substr(0, text.size() / 2));
  directory_.AddFile("new/power/empty.json", "");
  directory_.AddFile("new/power/huge.json", std::string(2'000'000, ' '));
  directory_.AddFile("new/power/notes.txt", "not one of ours");
  std::filesystem::create_directory(directory_.path() / "new/power/folder.json");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Found(Context()), Setting(200_W));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  for (const char* name : {"cut.json", "empty.json", "huge.json", "folder.json"})
    EXPECT_THAT(said, HasSubstr(name));
  EXPECT_THAT(said, Not(HasSubstr("notes.txt")));
  EXPECT_EQ(ReadSmallFile(cut).value(), text.substr(0, text.size() / 2));
}

TEST_F(ProfileFolderTest, AReferenceFileInTheFolderHoldsForNobody) {
  directory_.AddFile("new/power/reference.json",
                     R"({"measurements": [{"power_limit": 100, "energy": 1, "time": 1}]})");
  EXPECT_EQ(Found(Context()), std::nullopt);
  ProfileContext unknown;
  EXPECT_EQ(Found(unknown), std::nullopt);
}

TEST_F(ProfileFolderTest, WritersAtTheSameTimeLeaveOneWholeProfile) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(folder_.Save(Measured(Context(), Watts(100.0 + writer))).ok());
        EXPECT_TRUE(folder_.Find(Context(), KnobKind::kGpuPowerLimit).has_value());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(Found(Context()).has_value());
}

TEST_F(ProfileFolderTest, AFolderThatCannotBeMadeIsAnError) {
  const auto file = directory_.AddFile("file", "");
  const auto saved = ProfileFolder(file / "power").Save(Measured(Context()));
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("file/power"));
}

TEST_F(ProfileFolderTest, AFileThatAUserNamesIsReadOrTheReasonNamesIt) {
  const auto reference = directory_.AddFile(
      "profile.json", R"({"measurements": [{"power_limit": 100, "energy": 1, "time": 1}]})");
  const auto read = ReadProfileFile(reference, 2);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().max_power, 200_W);
  EXPECT_EQ(WhyProfileDoesNotHold(read.value().context, Context()), std::nullopt);

  const auto damaged = directory_.AddFile("damaged.json", "{");
  EXPECT_THAT(ReadProfileFile(damaged).error().message, HasSubstr("damaged.json: not valid JSON"));
  EXPECT_EQ(ReadProfileFile(directory_.path() / "none.json").error().code, ErrorCode::kNotFound);
}

TEST_F(ProfileFolderTest, WhyAProfileDoesNotHoldIsASentence) {
  ProfileContext other = Context();
  other.device_model = "A40";
  EXPECT_EQ(WhyProfileDoesNotHold(other, Context()),
            "it was measured with device \"A40\" and not \"Tesla V100\"");
  EXPECT_EQ(WhyProfileDoesNotHold(Context(), Context()), std::nullopt);
}

TEST(ProfileFolderPlaceTest, ItStandsBesideTheCalibrations) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/me"}};
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(ProfileFolder::OfUser(environment), "/home/me/.config/zeus/power");
  variables["XDG_CONFIG_HOME"] = "/etc/me";
  EXPECT_EQ(ProfileFolder::OfUser(environment), "/etc/me/zeus/power");
  variables["ZEUS_PROFILE_DIR"] = "/profiles";
  EXPECT_EQ(ProfileFolder::OfUser(environment), "/profiles/power");
  variables = {};
  EXPECT_EQ(ProfileFolder::OfUser(environment), std::nullopt);
}

}  // namespace profile_folder_test
}  // namespace zeus
