#include "zeus/device/sim/node_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>

#include "zeus/base/testing/temporary_directory.h"
#include "zeus/device/sim/node_layout.h"

namespace zeus::sim {
namespace node_directory_test {

using ::testing::HasSubstr;

class NodeDirectoryTest : public ::testing::Test {
 protected:
  static NodeSpec Spec(const char* gpus) {
    NodeSpec spec;
    spec.gpus = ParseGpuList(gpus).value();
    return spec;
  }

  // Replaces bytes of a node's file.
  void Overwrite(const char* name, std::size_t offset, const std::string& bytes) {
    std::fstream file(nodes_.NodeFile(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }

  Error OpenError(const char* name) {
    const auto node = nodes_.Open(name, Access::kRead);
    EXPECT_FALSE(node.ok());
    return node.ok() ? Error{ErrorCode::kInternal, ""} : node.error();
  }

  zeus::testing::TemporaryDirectory directory_;
  VirtualClock clock_;
  NodeDirectory nodes_{directory_.path(), "this boot", clock_};
};

TEST_F(NodeDirectoryTest, AStartedNodeIsSeenByEverybodyElse) {
  ASSERT_TRUE(nodes_.Create("a", Spec("2xA100,V100")).ok());

  const auto node = nodes_.Open("a", Access::kRead);
  ASSERT_TRUE(node.ok()) << node.error().message;
  EXPECT_EQ(node.value().gpu_count(), 3U);
  EXPECT_EQ(node.value().Read(2, Seconds(0)).value().core.model().id, "V100");
}

TEST_F(NodeDirectoryTest, ANameIsTakenOnlyOnce) {
  ASSERT_TRUE(nodes_.Create("a", Spec("V100")).ok());
  const auto second = nodes_.Create("a", Spec("A100"));

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(
      second.error().message,
      "a simulated node named \"a\" is running already; stop it with: zeus sim stop --name a");
  EXPECT_EQ(nodes_.Open("a", Access::kRead).value().Read(0, Seconds(0)).value().core.model().id,
            "V100");
}

TEST_F(NodeDirectoryTest, StoppingLeavesNothing) {
  ASSERT_TRUE(nodes_.Create("a", Spec("V100")).ok());
  ASSERT_TRUE(nodes_.Remove("a").ok());

  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  EXPECT_EQ(nodes_.Remove("a").error().code, ErrorCode::kNotFound);
}

TEST_F(NodeDirectoryTest, AStopThatDiedHalfwayIsFinishedByTheNext) {
  auto node = nodes_.Create("a", Spec("V100"));
  ASSERT_TRUE(node.ok());
  node.value().MarkStopped();

  EXPECT_TRUE(nodes_.Remove("a").ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(NodeDirectoryTest, ANodeThatTookTheNameOfAStoppedOneStays) {
  ASSERT_TRUE(nodes_.Create("a", Spec("V100")).ok());
  const auto old = nodes_.Open("a", Access::kRead);
  ASSERT_TRUE(nodes_.Remove("a").ok());
  ASSERT_TRUE(nodes_.Create("a", Spec("A100")).ok());

  EXPECT_TRUE(old.value().stopped());
  EXPECT_FALSE(nodes_.Open("a", Access::kRead).value().stopped());
}

TEST_F(NodeDirectoryTest, ADamagedFileSaysHowToRemoveIt) {
  directory_.AddFile("zeus-sim-a", std::string(5000, 'x'));

  EXPECT_EQ(OpenError("a").code, ErrorCode::kUnavailable);
  EXPECT_THAT(OpenError("a").message, HasSubstr("remove it with: zeus sim stop --name a"));
  EXPECT_TRUE(nodes_.Remove("a").ok());
}

TEST_F(NodeDirectoryTest, AHostileNameIsQuotedAndShortened) {
  const std::string message = OpenError(("\x1b[31m" + std::string(5000, 'x')).c_str()).message;

  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 200U);
}

TEST_F(NodeDirectoryTest, WhoeverStillHasAStoppedNodeCanTell) {
  ASSERT_TRUE(nodes_.Create("a", Spec("V100")).ok());
  const auto node = nodes_.Open("a", Access::kRead);
  EXPECT_FALSE(node.value().stopped());
  ASSERT_TRUE(nodes_.Remove("a").ok());

  EXPECT_TRUE(node.value().stopped());
  EXPECT_TRUE(node.value().Read(0, Seconds(1)).ok());
}

TEST_F(NodeDirectoryTest, AnUnknownNodeNamesThoseThatRun) {
  ASSERT_TRUE(nodes_.Create("left", Spec("V100")).ok());
  ASSERT_TRUE(nodes_.Create("right", Spec("V100")).ok());

  EXPECT_EQ(OpenError("middle").code, ErrorCode::kNotFound);
  EXPECT_THAT(OpenError("middle").message, HasSubstr("(running: left, right)"));
}

TEST_F(NodeDirectoryTest, EverybodyMayLookOnlyTheOwnerMayChange) {
  ASSERT_TRUE(nodes_.Create("a", Spec("V100")).ok());

  struct stat status {};
  ASSERT_EQ(::stat(nodes_.NodeFile("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0644U);
}

TEST_F(NodeDirectoryTest, AStaleNodeOfAnEarlierBootIsNamedAndCanBeRemoved) {
  NodeDirectory earlier(directory_.path(), "an earlier boot", clock_);
  ASSERT_TRUE(earlier.Create("old", Spec("V100")).ok());

  EXPECT_THAT(OpenError("old").message, HasSubstr("earlier boot"));
  EXPECT_THAT(nodes_.Create("old", Spec("V100")).error().message, HasSubstr("earlier boot"));
  const auto entries = nodes_.List();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, "old");
  EXPECT_FALSE(entries[0].state.ok());
  EXPECT_TRUE(nodes_.Remove("old").ok());
  EXPECT_TRUE(nodes_.Create("old", Spec("V100")).ok());
}

TEST_F(NodeDirectoryTest, ANodeOfAnotherBuildSaysSo) {
  ASSERT_TRUE(nodes_.Create("a", Spec("V100")).ok());
  Overwrite("a", offsetof(NodeHeader, fingerprint), "another!");

  EXPECT_EQ(OpenError("a").code, ErrorCode::kNotSupported);
  EXPECT_THAT(OpenError("a").message, HasSubstr("another build of Zeus"));
}

TEST_F(NodeDirectoryTest, ATruncatedFileIsAnError) {
  ASSERT_TRUE(nodes_.Create("a", Spec("2xV100")).ok());
  const auto full = std::filesystem::file_size(nodes_.NodeFile("a"));
  for (const std::uintmax_t size :
       {full - 1, full / 2, std::uintmax_t{200}, std::uintmax_t{7}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(nodes_.NodeFile("a"), size);
    EXPECT_THAT(OpenError("a").message, HasSubstr("damaged")) << size;
  }
}

TEST_F(NodeDirectoryTest, AnyDamageToTheHeaderIsAnErrorOrHarmless) {
  ASSERT_TRUE(nodes_.Create("a", Spec("2xV100")).ok());
  std::ifstream original(nodes_.NodeFile("a"), std::ios::binary);
  std::string bytes(sizeof(NodeHeader), '\0');
  original.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  for (std::size_t i = 0; i < sizeof(NodeHeader); ++i) {
    Overwrite("a", i, "\xff");
    const auto node = nodes_.Open("a", Access::kRead);
    // Not every byte matters (padding, the seed): those that are accepted must be readable.
    if (node.ok()) {
      for (unsigned gpu = 0; gpu < node.value().gpu_count(); ++gpu)
        EXPECT_TRUE(node.value().Read(gpu, Seconds(1)).ok()) << i;
    }
    Overwrite("a", i, bytes.substr(i, 1));
  }
}

TEST_F(NodeDirectoryTest, DamageToAGpuIsAnErrorOfThatGpu) {
  ASSERT_TRUE(nodes_.Create("a", Spec("2xV100")).ok());
  const auto size = std::filesystem::file_size(nodes_.NodeFile("a"));
  Overwrite("a", size - sizeof(CoreSlot), std::string(sizeof(CoreSlot), '\xa5'));

  auto node = nodes_.Open("a", Access::kRead);
  ASSERT_TRUE(node.ok());
  EXPECT_TRUE(node.value().Read(0, Seconds(0)).ok());
  EXPECT_EQ(node.value().Read(1, Seconds(0)).error().code, ErrorCode::kUnavailable);
}

TEST_F(NodeDirectoryTest, FilesThatAreNoNodesAreErrors) {
  directory_.AddFile("zeus-sim-text", "hello, world: this is no node, whatever its name says. " +
                                          std::string(5000, 'x'));
  std::filesystem::create_directory(nodes_.NodeFile("folder"));
  directory_.AddLink("zeus-sim-link", "/etc/passwd");

  EXPECT_THAT(OpenError("text").message, HasSubstr("not a simulated node"));
  EXPECT_FALSE(nodes_.Open("folder", Access::kRead).ok());
  EXPECT_FALSE(nodes_.Open("link", Access::kRead).ok());
  EXPECT_EQ(nodes_.List().size(), 3U);
}

TEST_F(NodeDirectoryTest, AMissingDirectoryIsAnErrorThatNamesIt) {
  const NodeDirectory missing(directory_.path() / "nowhere", "this boot", clock_);

  EXPECT_THAT(missing.Create("a", Spec("V100")).error().message, HasSubstr("nowhere"));
  EXPECT_TRUE(missing.List().empty());
}

TEST(NodeSpecTest, AGpuListKeepsItsOrderAndCounts) {
  const auto gpus = ParseGpuList("2xA100, V100,1xrtx6000");

  ASSERT_TRUE(gpus.ok()) << gpus.error().message;
  EXPECT_EQ(FormatGpuList(gpus.value()), "2xA100,1xV100,1xRTX6000");
}

class BadGpuListTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BadGpuListTest, IsRefusedWithTheTextQuoted) {
  const auto gpus = ParseGpuList(GetParam());

  ASSERT_FALSE(gpus.ok());
  EXPECT_EQ(gpus.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(gpus.error().message, HasSubstr(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(NodeSpec, BadGpuListTest,
                         ::testing::Values("", ",", "4x", "x", "0xV100", "xV100", "4xFOO", "V100,",
                                           "65xV100", "40xV100,40xA100", "-1xV100",
                                           "99999999999999999999xV100", "4 x V100"));

TEST(NodeSpecTest, ANameIsAFileNameAndNothingMore) {
  EXPECT_TRUE(CheckNodeName("ci-job_7.a").ok());
  for (const std::string& name : {std::string(), std::string("a/b"), std::string("a b"),
                                  std::string("a\n"), std::string(65, 'a')}) {
    EXPECT_FALSE(CheckNodeName(name).ok()) << name;
  }
}

TEST(NodeSpecTest, TheTimeScaleIsPositiveAndFinite) {
  NodeSpec spec{.gpus = ParseGpuList("V100").value(), .seed = 0, .time_scale = 1, .ambient = {}};
  EXPECT_TRUE(CheckNodeSpec(spec).ok());
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    spec.time_scale = scale;
    EXPECT_FALSE(CheckNodeSpec(spec).ok()) << scale;
  }
}

}  // namespace node_directory_test
}  // namespace zeus::sim
