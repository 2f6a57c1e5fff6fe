#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <memory>

#include "zeus/device/rapl/cpu_discovery.h"
#include "zeus/device/rapl/testing/fake_perf.h"
#include "zeus/device/rapl/testing/rapl_tree.h"
#include "zeus/device/testing/cpu_conformance.h"

namespace zeus::testing {
namespace rapl_conformance_test {

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

}  // namespace rapl_conformance_test
}  // namespace zeus::testing
