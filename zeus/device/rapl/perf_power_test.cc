#include "zeus/device/rapl/perf_power.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "zeus/device/rapl/testing/fake_perf.h"
#include "zeus/device/rapl/testing/rapl_tree.h"

namespace zeus::rapl {
namespace perf_power_test {

using namespace zeus::literals;

class PerfPowerTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<PerfCounter>> Open(const std::vector<int>& cpus) {
    const PowerPmu pmu = ReadPowerPmu(tree_.sysfs()).value();
    return PerfCounter::Open(perf_.api(), pmu, *pmu.package, cpus);
  }

  testing::RaplTree tree_;
  testing::FakePerf perf_;
};

TEST_F(PerfPowerTest, ReadsThePmuFromSysfs) {
  tree_.AddPmu("0,24");
  tree_.AddEvent("energy-ram", "event=0x03");
  const auto pmu = ReadPowerPmu(tree_.sysfs());
  ASSERT_TRUE(pmu.ok()) << pmu.error().message;
  EXPECT_EQ(pmu.value().type, testing::RaplTree::kPmuType);
  EXPECT_EQ(pmu.value().cpus, (std::vector{0, 24}));
  EXPECT_EQ(pmu.value().package->config, 2U);
  EXPECT_EQ(pmu.value().memory->config, 3U);
}

TEST_F(PerfPowerTest, AKernelWithoutThePmuIsNotFound) {
  EXPECT_EQ(ReadPowerPmu(tree_.sysfs()).error().code, ErrorCode::kNotFound);
}

TEST_F(PerfPowerTest, BadPmuFilesAreErrorsThatNameTheFile) {
  for (const char* file : {"type", "cpumask", "events/energy-pkg", "events/energy-pkg.scale"}) {
    for (const auto& content :
         {std::string(), std::string(1 << 20, '1'), std::string("\0\xff\x01", 3)}) {
      tree_.AddPmu("0");
      tree_.AddPmuFile(file, content);
      const auto pmu = ReadPowerPmu(tree_.sysfs());
      ASSERT_FALSE(pmu.ok()) << file;
      EXPECT_NE(pmu.error().message.find(file), std::string::npos) << pmu.error().message;
    }
  }
}

TEST_F(PerfPowerTest, AnEventThatDoesNotCountJoulesIsRefused) {
  tree_.AddPmu("0");
  tree_.AddPmuFile("events/energy-pkg.unit", "Watts");
  EXPECT_EQ(ReadPowerPmu(tree_.sysfs()).error().code, ErrorCode::kNotSupported);
}

TEST_F(PerfPowerTest, CountsJoulesSinceItWasOpened) {
  tree_.AddPmu("0");
  auto counter = Open({0});
  ASSERT_TRUE(counter.ok()) << counter.error().message;
  EXPECT_EQ(perf_.last_type(), testing::RaplTree::kPmuType);
  EXPECT_EQ(counter.value()->Read().value().total, 0_J);
  perf_.Use(0, testing::FakePerf::kPackage, Joules(0.25));
  EXPECT_EQ(counter.value()->Read().value().total, Joules(0.25));
  EXPECT_FALSE(counter.value()->LongestReadInterval().has_value());
}

TEST_F(PerfPowerTest, SumsTheDiesOfAPackage) {
  tree_.AddPmu("0,8");
  auto counter = Open({0, 8});
  perf_.Use(0, testing::FakePerf::kPackage, 3_J);
  perf_.Use(8, testing::FakePerf::kPackage, 4_J);
  EXPECT_EQ(counter.value()->Read().value().total, 7_J);
}

TEST_F(PerfPowerTest, TheEndOf64BitsLosesNothing) {
  tree_.AddPmu("0");
  auto counter = Open({0});
  const auto count = [&](std::uint64_t value) {
    perf_.SetCount(0, testing::FakePerf::kPackage, value);
    return counter.value()->Read().value();
  };
  count(std::uint64_t{1} << 62);
  count(std::uint64_t{1} << 63);
  const auto before = count(UINT64_MAX - 9);
  const auto after = count((std::uint64_t{1} << 32) - 10);
  EXPECT_EQ(after.epoch, before.epoch);
  EXPECT_EQ(after.total - before.total, 1_J);
}

TEST_F(PerfPowerTest, ACounterThatGoesBackStartsANewEpoch) {
  tree_.AddPmu("0");
  auto counter = Open({0});
  perf_.Use(0, testing::FakePerf::kPackage, 5_J);
  const auto before = counter.value()->Read().value();
  perf_.SetCount(0, testing::FakePerf::kPackage, 0);
  const auto after = counter.value()->Read().value();
  EXPECT_EQ(after.epoch, before.epoch + 1);
  EXPECT_EQ(after.total, before.total);
}

TEST_F(PerfPowerTest, ARefusalNamesTheCpuAndClosesWhatWasOpen) {
  tree_.AddPmu("0,8");
  perf_.RefuseOpen(8, EACCES);
  const auto counter = Open({0, 8});
  ASSERT_FALSE(counter.ok());
  EXPECT_EQ(counter.error().code, ErrorCode::kPermissionDenied);
  EXPECT_NE(counter.error().message.find("cpu 8"), std::string::npos);
  EXPECT_EQ(perf_.open_descriptors(), 0U);
}

TEST_F(PerfPowerTest, ClosesItsDescriptors) {
  tree_.AddPmu("0,8");
  {
    const auto counter = Open({0, 8});
    EXPECT_EQ(perf_.open_descriptors(), 2U);
  }
  EXPECT_EQ(perf_.open_descriptors(), 0U);
}

TEST_F(PerfPowerTest, AFailedReadIsAnError) {
  tree_.AddPmu("0");
  auto counter = Open({0});
  perf_.FailReads(ENODATA);
  EXPECT_EQ(counter.value()->Read().error().code, ErrorCode::kUnavailable);
}

TEST(SystemPerfApiTest, AnUnknownPmuTypeIsRefusedByTheKernel) {
  const PerfApi api = SystemPerfApi();
  EXPECT_LT(api.open(UINT32_MAX, 2, 0), 0);
  std::uint64_t count = 0;
  EXPECT_EQ(api.read(-1, count), EBADF);
}

}  // namespace perf_power_test
}  // namespace zeus::rapl
