#include "zeus/daemon/job_folder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <string>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace {

class JobFolderTest : public ::testing::Test {
 protected:
  std::string Content(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(path_ / file).rdbuf();
    return text.str();
  }
  bool Exists(const std::string& file) const { return std::filesystem::exists(path_ / file); }

  zeus::testing::TemporaryDirectory outside_;
  const std::filesystem::path path_ = outside_.path() / "jobs";
};

TEST_F(JobFolderTest, EachGpuWithJobsHasAFile) {
  const auto folder = JobFolder::Open(path_, 3).value();
  std::ofstream(path_ / "2") << "of an earlier run\n";
  std::ofstream(path_ / "7") << "of somebody else\n";
  ASSERT_TRUE(folder->Show({{0, {"12"}}, {1, {"7", "12"}}}).ok());
  EXPECT_EQ(Content("0"), "12\n");
  EXPECT_EQ(Content("1"), "12\n7\n");
  EXPECT_FALSE(Exists("2"));
  EXPECT_TRUE(Exists("7")) << "there is no such GPU";
  struct stat state {};
  ASSERT_EQ(::stat((path_ / "0").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0644U) << "an exporter of another user reads it";
  ASSERT_TRUE(folder->Show({{1, {"7"}}}).ok());
  EXPECT_FALSE(Exists("0"));
  EXPECT_EQ(Content("1"), "7\n");
}

TEST_F(JobFolderTest, WhatCannotBeWrittenIsTriedAgain) {
  const auto folder = JobFolder::Open(path_, 2).value();
  std::filesystem::create_directory(path_ / "0");
  EXPECT_FALSE(folder->Show({{0, {"12"}}, {1, {"13"}}}).ok());
  EXPECT_EQ(Content("1"), "13\n") << "one GPU does not stop another";
  std::filesystem::remove(path_ / "0");
  ASSERT_TRUE(folder->Show({{0, {"12"}}, {1, {"13"}}}).ok());
  EXPECT_EQ(Content("0"), "12\n");
}

TEST_F(JobFolderTest, AFolderOfOthersIsRefused) {
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(JobFolder::Open(path_, 1).error().code, ErrorCode::kPermissionDenied);
  std::filesystem::create_directory_symlink("/tmp", outside_.path() / "link");
  EXPECT_FALSE(JobFolder::Open(outside_.path() / "link", 1).ok());
  EXPECT_FALSE(JobFolder::Open(outside_.path() / "no" / "folder", 1).ok());
}

TEST(NameForOthersTest, JobsHaveTheNamesOfTheirSchedulers) {
  EXPECT_EQ(NameForOthers("slurm:1234"), "1234");
  EXPECT_EQ(NameForOthers("slurm:zeus.1234"), "1234");
  EXPECT_EQ(NameForOthers("nightly"), "nightly");
  EXPECT_EQ(NameForOthers("k8s:team-a/web/main"), "");
}

}  // namespace
}  // namespace zeus::daemon
