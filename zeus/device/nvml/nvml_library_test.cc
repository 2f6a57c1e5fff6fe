#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/file.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/nvml/nvml_session.h"
#include "zeus/device/nvml/testing/broken_libraries.h"

namespace zeus::nvml {
namespace nvml_library_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NvmlLibraryTest, AFileThatIsNotThereIsNotFound) {
  const auto api = LoadNvml("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(api.error().message, "/nonexistent/libnvidia-ml.so.1 not found");
}

TEST(NvmlLibraryTest, ABareNameThatIsNotInstalledIsNotFound) {
  const auto api = LoadNvml("libzeus-surely-not-installed.so.1");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kNotFound);
}

TEST(NvmlLibraryTest, ATextFileIsNotALibrary) {
  zeus::testing::TemporaryDirectory directory;
  const auto path = directory.AddFile("libnvidia-ml.so.1", "this is not a library\n").string();
  const auto api = LoadNvml(path);
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(api.error().message, HasSubstr(path + " cannot be loaded as a library: "));
}

TEST(NvmlLibraryTest, AnEmptyFileAndADirectoryAreNotLibraries) {
  zeus::testing::TemporaryDirectory directory;
  const auto empty = directory.AddFile("empty.so", "").string();
  EXPECT_EQ(LoadNvml(empty).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(LoadNvml(directory.path().string()).error().code, ErrorCode::kInvalidArgument);
}

TEST(NvmlLibraryTest, ALibraryThatIsCutShortIsRefused) {
  zeus::testing::TemporaryDirectory directory;
  const std::string whole = ReadSmallFile(testing::BareNvml(), 1 << 20).value();
  for (const std::size_t size : {4U, 63U, 200U, 1000U, 2000U}) {
    const auto path = directory.AddFile("cut.so", whole.substr(0, size)).string();
    const auto api = LoadNvml(path);
    ASSERT_FALSE(api.ok()) << size;
    EXPECT_EQ(api.error().code, ErrorCode::kInvalidArgument) << size;
    EXPECT_THAT(api.error().message, HasSubstr("it is cut short")) << size;
  }
}

TEST(NvmlLibraryTest, ALibraryWithHalfTheFunctionsIsRefusedByNamingTheMissing) {
  const auto api = LoadNvml(testing::HalfNvml());
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(api.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(api.error().message,
              HasSubstr("lacks nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetUUID"));
  EXPECT_THAT(api.error().message, Not(HasSubstr("nvmlInit_v2")));
}

TEST(NvmlLibraryTest, OldNamesServeAndOptionalFunctionsMayBeMissing) {
  const auto api = LoadNvml(testing::BareNvml());
  ASSERT_TRUE(api.ok()) << api.error().message;
  EXPECT_NE(api.value().init, nullptr);
  EXPECT_NE(api.value().get_count, nullptr);
  EXPECT_EQ(api.value().get_field_values, nullptr);
  EXPECT_EQ(Call(api.value().get_persistence, Device{}, static_cast<int*>(nullptr)),
            kFunctionNotFound);
}

}  // namespace nvml_library_test
}  // namespace zeus::nvml
