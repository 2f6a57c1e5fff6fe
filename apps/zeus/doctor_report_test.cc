#include "apps/zeus/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "zeus/base/json.h"
#include "zeus/device/sim/simulated_gpu.h"

namespace zeus::cli {
namespace doctor_report_test {

using namespace std::chrono_literals;
using namespace zeus::literals;
using ::testing::HasSubstr;

class DoctorReportTest : public ::testing::Test {
 protected:
  sim::SimulatedGpu& Add(const char* model) {
    auto gpu = std::make_unique<sim::SimulatedGpu>(clock_, *sim::FindGpuModel(model).value());
    sim::SimulatedGpu& added = *gpu;
    node_.gpus.push_back(std::move(gpu));
    return added;
  }

  DoctorReport Report() { return Diagnose(node_, clock_, 1.2s); }

  VirtualClock clock_;
  Node node_;
};

TEST_F(DoctorReportTest, AnEmptyMachineHasNoEnergySource) {
  EXPECT_FALSE(Report().AnyEnergySource());
  EXPECT_THAT(ToText(Report()), HasSubstr("zeus sim start"));
}

TEST_F(DoctorReportTest, MeasuresTheUpdatePeriodOfTheCounter) {
  Add("V100");
  Add("A100");
  const DoctorReport report = Report();
  ASSERT_TRUE(report.gpus[0].energy.update_period && report.gpus[1].energy.update_period);
  EXPECT_NEAR(report.gpus[0].energy.update_period->period.count(), 0.020, 0.002);
  EXPECT_NEAR(report.gpus[1].energy.update_period->period.count(), 0.100, 0.002);
}

TEST_F(DoctorReportTest, APartWithoutACounterSaysWhyAndWhatIsUsedInstead) {
  sim::SimulatedGpu& gpu = Add("P100");
  ASSERT_TRUE(gpu.AttachLoad({.demand = 150_W, .duration = 60s}).ok());
  const Json json = ToJson(Report());
  EXPECT_EQ(json["gpus"][0]["energy"]["source"], "integrated");
  EXPECT_FALSE(json["gpus"][0]["energy"]["reason"].get<std::string>().empty());
}

TEST_F(DoctorReportTest, ALostGpuIsNoEnergySource) {
  Add("V100").InjectFault({.kind = sim::FaultKind::kLost});
  const DoctorReport report = Report();
  EXPECT_FALSE(report.AnyEnergySource());
  EXPECT_EQ(ToJson(report)["gpus"][0]["energy"]["source"], nullptr);
  EXPECT_THAT(ToText(report), HasSubstr("no  energy"));
}

TEST_F(DoctorReportTest, ARefusedSetterIsFoundOutWithoutChangingTheLimit) {
  sim::SimulatedGpu& gpu = Add("V100");
  ASSERT_TRUE(gpu.SetPowerLimitWithoutJournal(150_W).ok());
  gpu.InjectFault({.kind = sim::FaultKind::kNoPermission});
  const Json limit = ToJson(Report())["gpus"][0]["power_limit"];
  EXPECT_EQ(limit["min"], 100);
  EXPECT_EQ(limit["max"], 250);
  EXPECT_EQ(limit["current"], 150);
  EXPECT_EQ(limit["settable"], false);
  EXPECT_FALSE(limit["reason"].get<std::string>().empty());
  EXPECT_EQ(gpu.CurrentPowerLimit().value().requested, 150_W);
}

TEST_F(DoctorReportTest, AFrozenCounterIsNotASource) {
  Add("V100").InjectFault({.kind = sim::FaultKind::kCounterFrozen});
  const Json energy = ToJson(Report())["gpus"][0]["energy"];
  EXPECT_EQ(energy["source"], "integrated");
  EXPECT_THAT(energy["reason"].get<std::string>(), HasSubstr("stood still"));
  EXPECT_FALSE(energy["fix"].get<std::string>().empty());
}

TEST_F(DoctorReportTest, AShortLookDoesNotCondemnACounter) {
  Add("A100");
  const Json energy = ToJson(Diagnose(node_, clock_, 50ms))["gpus"][0]["energy"];
  EXPECT_EQ(energy["source"], "counter");
  EXPECT_EQ(energy["update_period_seconds"], nullptr);
}

TEST_F(DoctorReportTest, AnOutOfBandCapIsNamed) {
  Add("V100").InjectFault({.kind = sim::FaultKind::kOutOfBandCap, .cap = 180_W});
  EXPECT_THAT(ToText(Report()), HasSubstr("180 W enforced by another agent"));
}

TEST_F(DoctorReportTest, AbsencesKeepTheirReasonAndFix) {
  node_.absent.push_back({.what = "CPU energy", .reason = "root only", .fix = "sudo chmod"});
  const DoctorReport report = Report();
  EXPECT_EQ(ToJson(report)["absent"][0]["fix"], "sudo chmod");
  EXPECT_THAT(ToText(report), HasSubstr("fix: sudo chmod"));
}

}  // namespace doctor_report_test
}  // namespace zeus::cli
