#include "zeus/device/knobs/knob_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zeus/base/file.h"
#include "zeus/base/json.h"
#include "zeus/base/testing/scoped_variable.h"
#include "zeus/base/testing/temporary_directory.h"
#include "zeus/base/testing/unprivileged.h"
#include "zeus/device/knobs/device_knob.h"
#include "zeus/device/knobs/knob_actuator.h"
#include "zeus/device/knobs/knob_repair.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/device/sim/testing/loads.h"

namespace zeus {
namespace knob_journal_test {

using namespace zeus::literals;
using sim::FaultKind;
using ::testing::HasSubstr;
using Outcome = KnobRepair::Outcome;

class KnobJournalTest : public ::testing::Test {
 protected:
  KnobJournalTest() {
    auto gpu = std::make_unique<sim::SimulatedGpu>(clock_, sim::testing::Model("V100"));
    gpu_ = gpu.get();
    node_.gpus.push_back(std::move(gpu));
    clock_.Advance(Seconds(100));
  }

  std::unique_ptr<DeviceKnob> MakeKnob(KnobKind kind = KnobKind::kGpuPowerLimit) {
    return DeviceKnob::Of(kind, *gpu_, journal_).value();
  }
  Watts Requested() { return gpu_->CurrentPowerLimit().value().requested; }

  static ProcessIdentity DeadProcess() {
    ProcessIdentity process = ThisProcess().value();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    process.pid = child;
    return process;
  }

  // As a process leaves it that was killed while the limit, 225 W before, was 150 W.
  KnobEntry Leftover() {
    EXPECT_TRUE(gpu_->SetPowerLimitWithoutJournal(150_W).ok());
    const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, *gpu_).value();
    return {.kind = KnobKind::kGpuPowerLimit,
            .device = actuator->device(),
            .before = {.setting = 225_W},
            .boot_id = ReadLine("/proc/sys/kernel/random/boot_id").value(),
            .epoch_mark = actuator->EpochMark(),
            .owner = DeadProcess()};
  }
  void Write(const KnobEntry& entry) { WriteText(entry, ToJson(entry).dump()); }
  void WriteText(const KnobEntry& entry, const std::string& text) {
    folder_.AddFile(KnobFileName(entry.kind, entry.device), text);
  }
  std::vector<KnobRepair> Repair() { return RepairKnobs(journal_, node_).value(); }
  std::size_t Entries() { return journal_.List().value().size(); }

  VirtualClock clock_;
  zeus::testing::TemporaryDirectory folder_;
  KnobJournal journal_{clock_, folder_.path()};
  Node node_;
  sim::SimulatedGpu* gpu_ = nullptr;
};

TEST_F(KnobJournalTest, AnEntryLivesAsLongAsTheChange) {
  ASSERT_TRUE(gpu_->SetPowerLimitWithoutJournal(200_W).ok());
  const auto knob = MakeKnob();
  EXPECT_EQ(Entries(), 0U);
  ASSERT_TRUE(knob->Set(150_W).ok());
  const auto records = journal_.List().value();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].standing, KnobJournal::Standing::kHeld);
  EXPECT_EQ(records[0].entry.before.setting, Setting(200_W));
  EXPECT_EQ(records[0].entry.device.uuid, gpu_->identity().uuid);
  EXPECT_GT(records[0].entry.epoch_mark.value(), 0_J);
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Entries(), 0U);
}

TEST_F(KnobJournalTest, ARefusedChangeLeavesNoEntry) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(gpu_->InjectFault({.kind = FaultKind::kNoPermission}));
  EXPECT_FALSE(knob->Set(150_W).ok());
  EXPECT_EQ(Entries(), 0U);
}

TEST_F(KnobJournalTest, AKnobHasOneHolder) {
  const auto first = MakeKnob();
  const auto second = MakeKnob();
  ASSERT_TRUE(first->Set(150_W).ok());
  const Status refused = second->Set(200_W);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message,
              HasSubstr("is held by process " + std::to_string(::getpid())));
  EXPECT_TRUE(second->Restore().ok());
  EXPECT_EQ(Requested(), 150_W);
  // Another knob of the same GPU is free.
  EXPECT_TRUE(MakeKnob(KnobKind::kGraphicsClock)->Set(1200_MHz).ok());
  ASSERT_TRUE(first->Restore().ok());
  EXPECT_TRUE(second->Set(200_W).ok());
}

TEST_F(KnobJournalTest, WhatADeadOwnerLeftIsTheTrueOriginal) {
  Write(Leftover());
  EXPECT_EQ(journal_.List().value()[0].standing, KnobJournal::Standing::kLeft);
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(175_W).ok());
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 225_W);
}

TEST_F(KnobJournalTest, RepairPutsBackWhatADeadOwnerLeft) {
  Write(Leftover());
  const auto repairs = Repair();
  ASSERT_EQ(repairs.size(), 1U);
  EXPECT_EQ(ToText(repairs[0]), "power limit of gpu:0 put back to 225 W");
  EXPECT_EQ(Requested(), 225_W);
  EXPECT_TRUE(Repair().empty());
}

TEST_F(KnobJournalTest, RepairUnlocksAClockAndReleasesTheDriver) {
  KnobEntry entry = Leftover();
  entry.kind = KnobKind::kGraphicsClock;
  entry.before = {.setting = std::nullopt, .persistence = Persistence::kOff};
  Write(entry);
  const auto repairs = Repair();
  ASSERT_EQ(repairs.size(), 1U);
  EXPECT_EQ(ToText(repairs[0]), "graphics clock of gpu:0 unlocked");
  EXPECT_EQ(gpu_->CurrentPersistence().value(), Persistence::kOff);
}

TEST_F(KnobJournalTest, RepairLeavesLivingOwnersAlone) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  EXPECT_TRUE(Repair().empty());
  EXPECT_EQ(Requested(), 150_W);
}

TEST_F(KnobJournalTest, AnOwnerInAnotherContainerCountsAsAlive) {
  KnobEntry entry = Leftover();
  entry.owner.pid_namespace = "pid:[1]";
  Write(entry);
  EXPECT_TRUE(Repair().empty());
  EXPECT_EQ(MakeKnob()->Set(200_W).error().code, ErrorCode::kUnavailable);
}

TEST_F(KnobJournalTest, EntriesOfAnEarlierBootOrDriverAreForgotten) {
  const KnobEntry left = Leftover();
  KnobEntry earlier_boot = left;
  earlier_boot.boot_id = "00000000-0000-0000-0000-000000000000";
  KnobEntry other_driver = left;
  other_driver.device.driver = "1.2.3";
  KnobEntry reloaded_driver = left;
  reloaded_driver.epoch_mark = *left.epoch_mark * 2;
  for (const KnobEntry& entry : {earlier_boot, other_driver, reloaded_driver}) {
    Write(entry);
    const auto repairs = Repair();
    ASSERT_EQ(repairs.size(), 1U);
    EXPECT_EQ(repairs[0].outcome, Outcome::kDiscarded);
    EXPECT_EQ(Entries(), 0U);
    Write(entry);
    EXPECT_TRUE(MakeKnob()->Set(125_W).ok());
    // 150 W was not changed by us, as far as this driver knows.
    EXPECT_EQ(Requested(), 150_W);
  }
}

TEST_F(KnobJournalTest, AMarkFromAfterAReloadIsNotTrusted) {
  ASSERT_TRUE(gpu_->Energy().ok());
  ASSERT_TRUE(gpu_->InjectFault({.kind = FaultKind::kDriverReload}));
  clock_.Advance(Seconds(1));
  EXPECT_EQ(MakeActuator(KnobKind::kGpuPowerLimit, *gpu_).value()->EpochMark(), std::nullopt);
}

TEST_F(KnobJournalTest, AnEmptyEntryIsOfABootThatLostItsPower) {
  const KnobEntry entry = Leftover();
  WriteText(entry, "");
  EXPECT_TRUE(journal_.Damaged().value().empty());
  EXPECT_TRUE(Repair().empty());
  const auto knob = MakeKnob();
  const Status set = knob->Set(125_W);
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 150_W);
  const auto file = folder_.path() / KnobFileName(entry.kind, entry.device);
  EXPECT_FALSE(std::filesystem::exists(file.string() + ".bad"));
}

TEST_F(KnobJournalTest, DamagedEntriesArePutAside) {
  const KnobEntry entry = Leftover();
  const std::string text = ToJson(entry).dump();
  const auto file = folder_.path() / KnobFileName(entry.kind, entry.device);
  for (std::size_t size = 1; size < text.size(); size += 7) {
    WriteText(entry, text.substr(0, size));
    EXPECT_TRUE(Repair().empty());
    EXPECT_TRUE(MakeKnob()->Set(125_W).ok());
    EXPECT_TRUE(std::filesystem::exists(file.string() + ".bad"));
    EXPECT_EQ(Requested(), 150_W);
  }
  for (const char* strange : {"[]", "null", "{\"schema\": \"zeus.knob/9\"}", "\xff\xfe"}) {
    WriteText(entry, strange);
    EXPECT_TRUE(MakeKnob()->Set(125_W).ok()) << strange;
  }
}

TEST_F(KnobJournalTest, WhatCannotBeRepairedIsToldAndKept) {
  Write(Leftover());
  ASSERT_TRUE(gpu_->InjectFault({.kind = FaultKind::kNoPermission}));
  auto repairs = Repair();
  ASSERT_EQ(repairs.size(), 1U);
  EXPECT_EQ(repairs[0].outcome, Outcome::kFailed);
  EXPECT_THAT(ToText(repairs[0]), HasSubstr("could not be put back"));
  EXPECT_EQ(Entries(), 1U);
  gpu_->ClearFaults();
  node_.gpus.clear();
  repairs = Repair();
  ASSERT_EQ(repairs.size(), 1U);
  EXPECT_THAT(repairs[0].reason, HasSubstr("is not here"));
}

TEST_F(KnobJournalTest, WithoutAJournalNothingIsChanged) {
  KnobJournal nowhere(clock_, folder_.path() / "missing");
  const auto knob = DeviceKnob::Of(KnobKind::kGpuPowerLimit, *gpu_, nowhere).value();
  EXPECT_FALSE(knob->Set(150_W).ok());
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(KnobJournalTest, TheFolderIsOursAlone) {
  const auto chosen = folder_.path() / "a/b";
  const zeus::testing::ScopedVariable variable("ZEUS_KNOB_DIR", chosen);
  EXPECT_EQ(KnobFolder().value(), chosen);
  EXPECT_EQ(KnobFolder().value(), chosen);
  ASSERT_EQ(::chmod(chosen.c_str(), 0777), 0);
  EXPECT_EQ(KnobFolder().error().code, ErrorCode::kPermissionDenied);
}

TEST_F(KnobJournalTest, TheFolderOfRootIsTrustedByEverybody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const zeus::testing::Unprivileged nobody;
  if (!nobody.effective()) GTEST_SKIP() << "root may not become somebody else here";
  EXPECT_TRUE(CheckKnobFolder("/", KnobFolderUse::kOfUser).ok());
}

TEST_F(KnobJournalTest, RootTrustsTheDaemonsUserInTheFolderOfTheMachineOnly) {
  constexpr uid_t kDaemon = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto folder = folder_.path() / "knobs";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder.c_str(), kDaemon, kDaemon), 0);
  EXPECT_TRUE(CheckKnobFolder(folder, KnobFolderUse::kOfMachine).ok());
  EXPECT_EQ(CheckKnobFolder(folder, KnobFolderUse::kOfUser).error().code,
            ErrorCode::kPermissionDenied);
  const zeus::testing::ScopedVariable variable("ZEUS_KNOB_DIR", folder);
  EXPECT_EQ(KnobFolder().error().code, ErrorCode::kPermissionDenied);
  ASSERT_EQ(::chmod(folder.c_str(), 0770), 0);
  EXPECT_FALSE(CheckKnobFolder(folder, KnobFolderUse::kOfMachine).ok());
}

TEST_F(KnobJournalTest, AnotherUsersFolderIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto folder = folder_.path() / "knobs";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder.c_str(), 4711, 4711), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const zeus::testing::Unprivileged nobody;
  if (!nobody.effective()) GTEST_SKIP() << "root may not become somebody else here";
  for (const auto use : {KnobFolderUse::kOfUser, KnobFolderUse::kOfMachine})
    EXPECT_EQ(CheckKnobFolder(folder, use).error().code, ErrorCode::kPermissionDenied);
}

TEST_F(KnobJournalTest, AFolderBehindALinkIsRefused) {
  const auto link = folder_.path() / "link";
  std::filesystem::create_directory_symlink("/", link);
  EXPECT_FALSE(CheckKnobFolder(link, KnobFolderUse::kOfMachine).ok());
}

TEST_F(KnobJournalTest, SettingsThatFailedDoNotDisplaceTheOneInForce) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  ASSERT_TRUE(gpu_->InjectFault({.kind = FaultKind::kNoPermission}));
  EXPECT_FALSE(knob->Set(175_W).ok());
  EXPECT_FALSE(knob->Set(200_W).ok());
  EXPECT_THAT(journal_.List().value()[0].entry.ours, ::testing::Contains(Setting(150_W)));
  gpu_->ClearFaults();
}

TEST_F(KnobJournalTest, TheEntryTellsWhoWroteIt) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  KnobEntry entry = journal_.List().value()[0].entry;
  EXPECT_EQ(entry.user, ::geteuid());
  EXPECT_EQ(OwnerText(entry, entry.owner.pid_namespace), "process " + std::to_string(::getpid()));
  entry.user = 4711;
  entry = ParseKnobEntry(ToJson(entry).dump()).value();
  EXPECT_EQ(OwnerText(entry, entry.owner.pid_namespace),
            "process " + std::to_string(::getpid()) + " (uid 4711)");
  entry.user.reset();  // As earlier versions wrote it.
  EXPECT_FALSE(ParseKnobEntry(ToJson(entry).dump()).value().user);
}

TEST_F(KnobJournalTest, PersistenceModeIsPutBackToo) {
  ASSERT_TRUE(gpu_->SetPersistence(Persistence::kOff).ok());
  const auto actuator = MakeActuator(KnobKind::kPersistence, *gpu_).value();
  KnobEntry entry = Leftover();
  entry.kind = KnobKind::kPersistence;
  entry.before = {.persistence = Persistence::kOff};
  ASSERT_TRUE(actuator->Apply(Watts(1)).ok());
  Write(entry);
  const auto repairs = Repair();
  ASSERT_EQ(repairs.size(), 1U);
  EXPECT_EQ(repairs[0].outcome, Outcome::kRestored);
  EXPECT_EQ(ToText(repairs[0]), "persistence mode of gpu:0 put back");
  EXPECT_EQ(gpu_->CurrentPersistence().value(), Persistence::kOff);
  EXPECT_EQ(Entries(), 0U);
  EXPECT_FALSE(ParseKnobKind("persistence").ok()) << "nobody chooses it as a knob to profile";
}

TEST_F(KnobJournalTest, TheEntryTellsWhatWasSet) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  ASSERT_TRUE(knob->Set(175_W).ok());
  const KnobEntry entry = journal_.List().value()[0].entry;
  EXPECT_TRUE(entry.locked);
  EXPECT_EQ(entry.ours, (std::vector<Setting>{150_W, 175_W}));
  EXPECT_EQ(ParseKnobEntry(ToJson(entry).dump()).value().ours, entry.ours);
}

TEST_F(KnobJournalTest, AHolderIsAliveWhateverItsPidSays) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  // As seen from another pid namespace: the number and the namespace tell nothing.
  KnobEntry entry = journal_.List().value()[0].entry;
  entry.owner = DeadProcess();
  Write(entry);
  EXPECT_EQ(journal_.List().value()[0].standing, KnobJournal::Standing::kHeld);
  entry.owner.pid_namespace = "pid:[1]";
  Write(entry);
  EXPECT_EQ(journal_.List().value()[0].standing, KnobJournal::Standing::kHeld);
  EXPECT_THAT(MakeKnob()->Set(200_W).error().message, HasSubstr("of another pid namespace"));
  EXPECT_TRUE(Repair().empty());
}

TEST_F(KnobJournalTest, WithoutItsLockAnOwnerOfAnotherPidNamespaceIsGone) {
  KnobEntry entry = Leftover();
  entry.locked = true;
  entry.owner.pid_namespace = "pid:[1]";
  entry.owner.pid = 1;
  Write(entry);
  EXPECT_EQ(journal_.List().value()[0].standing, KnobJournal::Standing::kLeft);
  ASSERT_EQ(Repair().size(), 1U);
  EXPECT_EQ(Requested(), 225_W);
}

TEST_F(KnobJournalTest, ALockWithoutAnEntryHoldsTheKnob) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  const KnobEntry entry = journal_.List().value()[0].entry;
  std::filesystem::remove(folder_.path() / KnobFileName(entry.kind, entry.device));
  EXPECT_THAT(MakeKnob()->Set(200_W).error().message, HasSubstr("held by another process"));
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 250_W);
}

TEST_F(KnobJournalTest, NothingStaysInTheFolderButItsLock) {
  ASSERT_TRUE(MakeKnob()->Set(150_W).ok());
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path()))
    files.push_back(file.path().filename());
  EXPECT_THAT(files, ::testing::ElementsAre("lock"));
}

TEST_F(KnobJournalTest, ForceOverrulesAHolder) {
  const auto knob = MakeKnob();
  ASSERT_TRUE(knob->Set(150_W).ok());
  const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, *gpu_).value();
  EXPECT_EQ(journal_.PutBackLeftover(*actuator).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(journal_.PutBackLeftover(*actuator, KnobJournal::Holders::kOverrule).value(),
            KnobJournal::Repair::kRestored);
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_EQ(Entries(), 0U);
  // The holder still holds it, and may go on.
  EXPECT_FALSE(MakeKnob()->Set(200_W).ok());
  ASSERT_TRUE(knob->Set(175_W).ok());
  EXPECT_EQ(Entries(), 1U);
  ASSERT_TRUE(knob->Restore().ok());
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_EQ(Entries(), 0U);
}

TEST_F(KnobJournalTest, TheDefaultIsThatOfTheDriverWhateverTheJournalSays) {
  const KnobEntry entry = Leftover();
  WriteText(entry, "damaged");
  const auto actuator = MakeActuator(KnobKind::kGpuPowerLimit, *gpu_).value();
  EXPECT_EQ(journal_.PutToDefault(*actuator).value(), "250 W");
  EXPECT_EQ(Requested(), 250_W);
  EXPECT_TRUE(journal_.Damaged().value().empty());
}

TEST_F(KnobJournalTest, WhatAnAdministratorSetAfterAKillIsLeftAlone) {
  KnobEntry entry = Leftover();
  entry.ours = {150_W};
  Write(entry);
  ASSERT_TRUE(gpu_->SetPowerLimitWithoutJournal(180_W).ok());
  const auto repairs = Repair();
  ASSERT_EQ(repairs.size(), 1U);
  EXPECT_EQ(repairs[0].outcome, Outcome::kNotOurs);
  EXPECT_THAT(ToText(repairs[0]), HasSubstr("left as it is (225 W before Zeus turned it)"));
  EXPECT_EQ(Requested(), 180_W);
  EXPECT_EQ(Entries(), 0U);
}

TEST_F(KnobJournalTest, DamageIsToldAlsoAfterItWasPutAside) {
  const KnobEntry entry = Leftover();
  WriteText(entry, "{");
  ASSERT_EQ(journal_.Damaged().value().size(), 1U);
  EXPECT_FALSE(journal_.Knows(entry.kind, entry.device));
  EXPECT_TRUE(MakeKnob()->Set(125_W).ok());
  ASSERT_EQ(journal_.Damaged().value().size(), 1U);
  EXPECT_EQ(journal_.Damaged().value()[0].file.extension(), ".bad");
}

}  // namespace knob_journal_test
}  // namespace zeus
