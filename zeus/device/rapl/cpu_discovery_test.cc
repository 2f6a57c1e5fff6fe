#include "zeus/device/rapl/cpu_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <memory>
#include <string>

#include "zeus/base/testing/unprivileged.h"
#include "zeus/device/rapl/testing/fake_perf.h"
#include "zeus/device/rapl/testing/rapl_tree.h"
#include "zeus/device/testing/cpu_conformance.h"

namespace zeus::rapl {
namespace cpu_discovery_test {

using namespace zeus::literals;
using ::testing::EndsWith;
using testing::FakePerf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CpuDiscoveryTest : public ::testing::Test {
 protected:
  Findings Discover() { return DiscoverWith(perf_.api(), tree_.surroundings()).value(); }

  static const Absence* Find(const Findings& findings, const std::string& what) {
    for (const Absence& absence : findings.absent)
      if (absence.what == what) return &absence;
    return nullptr;
  }

  void AddTwoPackages() {
    for (int cpu = 0; cpu < 4; ++cpu) tree_.AddCpu(cpu, cpu / 2);
    for (const int package : {0, 1}) {
      const std::string id = "intel-rapl:" + std::to_string(package);
      tree_.AddZone(id, "package-" + std::to_string(package));
      tree_.AddZone(id + ":0", "dram");
      tree_.AddConstraints(id, 125'000'000, 150'000'000);
    }
  }

  FakePerf perf_;
  testing::RaplTree tree_;
};

TEST_F(CpuDiscoveryTest, PrefersPerfAndTakesTheLimitFromPowercap) {
  AddTwoPackages();
  tree_.AddPmu("0,2");
  tree_.AddEvent("energy-ram", "event=0x03");
  const Findings found = Discover();
  ASSERT_EQ(found.cpus.size(), 2U);
  EXPECT_TRUE(found.absent.empty());
  CpuPackage& second = *found.cpus[1];
  EXPECT_EQ(second.name(), "cpu:1");
  EXPECT_EQ(second.identity().source, "perf");
  EXPECT_EQ(second.identity().model, "Intel(R) Xeon(R) Gold 6126 of package 1");
  perf_.Use(2, FakePerf::kPackage, 8_J);
  perf_.Use(2, FakePerf::kMemory, 2_J);
  EXPECT_EQ(second.TotalEnergy().value(), 8_J);
  EXPECT_EQ(second.dram()->TotalEnergy().value(), 2_J);
  EXPECT_EQ(found.cpus[0]->TotalEnergy().value(), 0_J);
  EXPECT_EQ(second.CurrentPowerLimit().value().requested, 125_W);
}

TEST_F(CpuDiscoveryTest, ChoosesPerPackage) {
  AddTwoPackages();
  tree_.AddPmu("0,2");
  perf_.RefuseOpen(2, ENODEV);
  const Findings found = Discover();
  ASSERT_EQ(found.cpus.size(), 2U);
  EXPECT_EQ(found.cpus[0]->identity().source, "perf");
  EXPECT_EQ(found.cpus[1]->identity().source, "powercap");
  EXPECT_FALSE(found.cpus[0]->LongestReadInterval().has_value());
  EXPECT_NEAR(found.cpus[1]->LongestReadInterval()->count(), 873.8, 0.1);
}

TEST_F(CpuDiscoveryTest, MemoryThatPerfDoesNotCountComesFromPowercap) {
  AddTwoPackages();
  tree_.AddPmu("0,2");
  const Findings found = Discover();
  tree_.SetEnergy("intel-rapl:0:0", 7'000'000);
  ASSERT_NE(found.cpus[0]->dram(), nullptr);
  EXPECT_EQ(found.cpus[0]->dram()->TotalEnergy().value(), 7_J);
}

TEST_F(CpuDiscoveryTest, TheCoreComplexesOfAnAmdPackageAreCountedOnce) {
  tree_.SetVendor("AuthenticAMD", "AMD EPYC 9654");
  for (int cpu = 0; cpu < 4; ++cpu) tree_.AddCpu(cpu, 0);
  tree_.AddPmu("0-3");
  const Findings found = Discover();
  ASSERT_EQ(found.cpus.size(), 1U);
  for (int cpu = 0; cpu < 4; ++cpu) perf_.Use(cpu, FakePerf::kPackage, 10_J);
  EXPECT_EQ(found.cpus[0]->TotalEnergy().value(), 10_J);
}

TEST_F(CpuDiscoveryTest, WithoutPowercapTheLimitSaysHowToGetIt) {
  tree_.AddCpu(0, 0);
  tree_.AddPmu("0");
  const Findings found = Discover();
  const auto limit = found.cpus.at(0)->SetPowerLimitWithoutJournal(100_W);
  ASSERT_FALSE(limit.ok());
  EXPECT_EQ(limit.error().code, ErrorCode::kNotSupported);
  EXPECT_THAT(limit.error().message, HasSubstr("sudo modprobe -a intel_rapl_common"));
  EXPECT_EQ(found.cpus[0]->dram(), nullptr);
  EXPECT_EQ(Find(found, "DRAM energy of cpu:0")->reason, "this CPU does not count its memory");
}

TEST_F(CpuDiscoveryTest, AParanoidKernelIsNamedWithItsLevelAndTheFix) {
  AddTwoPackages();
  tree_.AddPmu("0,2");
  tree_.SetParanoid(4);
  for (const int cpu : {0, 2}) perf_.RefuseOpen(cpu, EACCES);
  const Findings found = Discover();
  EXPECT_EQ(found.cpus.size(), 2U);
  const Absence* perf = Find(found, "CPU energy (perf)");
  ASSERT_NE(perf, nullptr);
  EXPECT_THAT(perf->reason, HasSubstr("kernel.perf_event_paranoid is 4"));
  EXPECT_THAT(perf->fix, HasSubstr("sudo sysctl kernel.perf_event_paranoid=0"));
  EXPECT_THAT(perf->fix, HasSubstr("setcap cap_perfmon+ep"));
}

TEST_F(CpuDiscoveryTest, ARefusalThatTheParanoidLevelDoesNotExplainPointsAtTheContainer) {
  AddTwoPackages();
  tree_.AddPmu("0,2");
  tree_.SetParanoid(-1);
  for (const int cpu : {0, 2}) perf_.RefuseOpen(cpu, EPERM);
  const Findings found = Discover();
  EXPECT_THAT(Find(found, "CPU energy (perf)")->fix, HasSubstr("--cap-add PERFMON"));
}

TEST_F(CpuDiscoveryTest, ARootOnlyEnergyFileIsNamedWithTheFix) {
  AddTwoPackages();
  for (const char* id : {"intel-rapl:0", "intel-rapl:1"})
    ::chmod(tree_.AddAttribute(id, "energy_uj", "1").c_str(), 0400);
  ::chmod(tree_.root().c_str(), 0755);
  const zeus::testing::Unprivileged nobody;
  if (!nobody.effective()) GTEST_SKIP() << "this user reads everything and cannot become another";
  const Findings found = Discover();
  EXPECT_TRUE(found.cpus.empty());
  const Absence* powercap = Find(found, "CPU energy (powercap)");
  ASSERT_NE(powercap, nullptr);
  EXPECT_THAT(powercap->reason, HasSubstr("energy_uj: Permission denied"));
  EXPECT_THAT(powercap->fix, StartsWith("sudo chmod a+r "));
  EXPECT_THAT(powercap->fix, EndsWith("/class/powercap/*/energy_uj"));
  EXPECT_EQ(Find(found, "CPU energy (perf)")->fix, "sudo modprobe rapl");
}

TEST_F(CpuDiscoveryTest, AVirtualMachineIsToldApart) {
  tree_.SetVendor("AuthenticAMD", "AMD EPYC", "hypervisor");
  tree_.AddCpu(0, 0);
  const Findings found = Discover();
  EXPECT_TRUE(found.cpus.empty());
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_EQ(found.absent[0].reason, "virtual machine: the hypervisor does not expose RAPL");
}

TEST_F(CpuDiscoveryTest, MissingDriversComeWithTheCommandThatLoadsThem) {
  tree_.AddCpu(0, 0);
  const Findings found = Discover();
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_EQ(found.absent[0].fix, "sudo modprobe -a rapl intel_rapl_common intel_rapl_msr");
}

TEST_F(CpuDiscoveryTest, AnotherArchitectureHasNoRapl) {
  tree_.Add("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
  const Findings found = Discover();
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_THAT(found.absent[0].reason, HasSubstr("no RAPL counters"));
  EXPECT_TRUE(found.absent[0].fix.empty());
}

TEST_F(CpuDiscoveryTest, BrokenEnergyFilesAreAReasonNotADevice) {
  tree_.AddCpu(0, 0);
  tree_.AddZone("intel-rapl:0", "package-0");
  tree_.AddAttribute("intel-rapl:0", "energy_uj", std::string("\0\x7f", 2));
  const Findings found = Discover();
  EXPECT_TRUE(found.cpus.empty());
  EXPECT_THAT(Find(found, "CPU energy (powercap)")->reason, HasSubstr("energy_uj: not text"));
}

TEST_F(CpuDiscoveryTest, TheRealMachineIsDiscoveredWithoutAnError) {
  SystemClock clock;
  const Surroundings real{.clock = clock, .environment = [](const auto&) { return std::nullopt; }};
  const auto found = DiscoverCpus(real);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(!found.value().cpus.empty() || !found.value().absent.empty());
}

}  // namespace cpu_discovery_test
}  // namespace zeus::rapl

namespace zeus::testing {
namespace cpu_discovery_test {

using rapl::testing::FakePerf;
using rapl::testing::RaplTree;

// Package 1 of two, so that a mix-up of packages shows.
void AddPackages(RaplTree& tree) {
  for (const int package : {0, 1}) {
    tree.AddCpu(package, package);
    const std::string id = "intel-rapl:" + std::to_string(package);
    tree.AddZone(id, "package-" + std::to_string(package));
    tree.AddZone(id + ":0", "dram");
    tree.AddConstraints(id, 125'000'000, 150'000'000);
  }
}

class PerfHarness final : public CpuHarness {
 public:
  PerfHarness() {
    AddPackages(tree_);
    tree_.AddPmu("0-1");
    tree_.AddEvent("energy-ram", "event=0x03");
    found_ = rapl::DiscoverWith(perf_.api(), tree_.surroundings()).value();
  }
  CpuPackage& package() override { return *found_.cpus.at(1); }
  void Use(Joules energy) override { perf_.Use(1, FakePerf::kPackage, energy); }
  void UseDram(Joules energy) override { perf_.Use(1, FakePerf::kMemory, energy); }
  void Break() override { perf_.FailReads(EIO); }

 private:
  RaplTree tree_;
  FakePerf perf_;
  Findings found_;
};

class PowercapHarness final : public CpuHarness {
 public:
  PowercapHarness() {
    AddPackages(tree_);
    found_ = rapl::DiscoverWith(perf_.api(), tree_.surroundings()).value();
  }
  CpuPackage& package() override { return *found_.cpus.at(1); }
  void Use(Joules energy) override { Grow("intel-rapl:1", package_, energy); }
  void UseDram(Joules energy) override { Grow("intel-rapl:1:0", memory_, energy); }
  void Break() override { tree_.AddAttribute("intel-rapl:1", "energy_uj", ""); }

 private:
  void Grow(const char* zone, std::uint64_t& counter, Joules energy) {
    counter += static_cast<std::uint64_t>(std::llround(energy.ToMicro()));
    tree_.SetEnergy(zone, counter % (RaplTree::kLargest + 1));
  }

  RaplTree tree_;
  FakePerf perf_;
  Findings found_;
  std::uint64_t package_ = 0;
  std::uint64_t memory_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Rapl, CpuConformance,
                         ::testing::Values(CpuCaseOf<PerfHarness>("Perf"),
                                           CpuCaseOf<PowercapHarness>("Powercap")),
                         NameOfCase());

}  // namespace cpu_discovery_test
}  // namespace zeus::testing
