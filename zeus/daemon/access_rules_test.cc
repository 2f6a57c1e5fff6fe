#include "zeus/daemon/access_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "zeus/base/testing/temporary_directory.h"

namespace zeus::daemon {
namespace access_rules_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using wire::LeaseKnob;

constexpr std::string_view kExample = R"([defaults]
scopes = ["gpu-read"]

[[rule]]
name   = "operators"
match  = { groups = [900], contained = false }
scopes = ["admin"]

[[rule]]
name   = "researchers"
match  = { groups = [100] }
scopes = ["gpu-read", "cpu-read", "gpu-control"]
devices = "job"
gpu_power_limit = { min_watts = 150, max_share = 0.9 }
leases = 16
sets_per_second = { gpu_power_limit = 10, graphics_clock = 200 }

[[rule]]
name   = "pods of team a"
match  = { cgroup = "*/kubepods*/*", namespace = "team-a" }
scopes = ["gpu-read", "gpu-control"]
devices = "job"

[bounds]
gpu_power_limit = { min_watts = 100 }
cpu_energy_period_seconds = 0.02
)";

Configuration Parsed(std::string_view toml) {
  auto parsed = ParseConfiguration(toml, "zeusd.toml");
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? std::move(parsed).value() : Configuration();
}

std::string Refusal(std::string_view toml) {
  const auto parsed = ParseConfiguration(toml, "zeusd.toml");
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  return parsed.error().message;
}

Caller Local(uid_t uid, gid_t gid = 1) {
  return {.subject = fmt::format("uid:{}", uid), .uid = uid, .gid = gid};
}

Caller Remote(std::string subject, std::optional<ScopeSet> scopes) {
  return {.transport = Caller::Transport::kTcp,
          .subject = std::move(subject),
          .token_scopes = std::move(scopes)};
}

TEST(ScopeTest, NamesAreParsedAndAdminContainsAll) {
  for (const Scope scope : {Scope::kGpuRead, Scope::kGpuControl, Scope::kCpuRead,
                            Scope::kCpuControl, Scope::kJob, Scope::kBudget, Scope::kAdmin})
    EXPECT_EQ(ParseScope(Name(scope)).value(), scope);
  EXPECT_EQ(ScopeSet({Scope::kAdmin}).names().size(), 7u);
  EXPECT_EQ(ScopeSet({Scope::kJob, Scope::kGpuRead}).names(),
            (std::vector<std::string>{"gpu-read", "job"}));
  EXPECT_THAT(ParseScope("gpu").error().message, HasSubstr("gpu-control"));
}

TEST(KnobBoundsTest, TheStricterOfBothHolds) {
  const KnobBounds a{.min_watts = Watts(100), .max_share = 0.9};
  const KnobBounds b{.min_watts = Watts(150), .max_share = 1.0, .min_hertz = Hertz(5e8)};
  for (const KnobBounds& both : {a.And(b), b.And(a)}) {
    EXPECT_EQ(both.min_watts, Watts(150));
    EXPECT_EQ(both.max_share, 0.9);
    EXPECT_EQ(both.min_hertz, Hertz(5e8));
  }
}

TEST(AccessRulesTest, WithoutAFileEverybodyReadsGpusAndRootIsAdmin) {
  const Configuration configuration = DefaultConfiguration();
  const Grant user = GrantFor(configuration, Local(1001));
  EXPECT_EQ(user.scopes, ScopeSet({Scope::kGpuRead}));
  EXPECT_FALSE(user.all_devices);
  EXPECT_EQ(user.leases, 64u);
  const Grant root = GrantFor(configuration, Local(0));
  EXPECT_TRUE(root.admin());
  EXPECT_TRUE(root.all_devices);
}

TEST(AccessRulesTest, RootOfAContainerIsNoAdmin) {
  Caller root = Local(0);
  root.contained = true;
  EXPECT_EQ(GrantFor(DefaultConfiguration(), root).scopes, ScopeSet({Scope::kGpuRead}));
}

TEST(AccessRulesTest, AnonymousCallersOverTcpMayNothing) {
  EXPECT_TRUE(GrantFor(DefaultConfiguration(), Remote("anonymous", std::nullopt)).scopes.empty());
  for (const char* match : {"{}", "{ contained = false }", "{ uids = [0] }", "{ cgroup = \"*\" }",
                            "{ subjects = [\"ci\"] }", "{ groups = [0] }"}) {
    const auto rule = fmt::format("[[rule]]\nmatch = {}\nscopes = [\"admin\"]\n", match);
    EXPECT_TRUE(GrantFor(Parsed(rule), Remote("anonymous", std::nullopt)).scopes.empty()) << match;
  }
}

TEST(AccessRulesTest, TheExampleGrantsResearchersWhatItSays) {
  const Configuration configuration = Parsed(kExample);
  EXPECT_EQ(configuration.cpu_energy_period, Seconds(0.02));
  Caller researcher = Local(1001);
  researcher.groups = {5, 100};
  const Grant grant = GrantFor(configuration, researcher);
  EXPECT_EQ(grant.scopes, ScopeSet({Scope::kGpuRead, Scope::kCpuRead, Scope::kGpuControl}));
  EXPECT_TRUE(grant.devices_of_jobs);
  EXPECT_FALSE(grant.all_devices);
  EXPECT_EQ(grant.bounds.at(LeaseKnob::kGpuPowerLimit).min_watts, Watts(150));
  EXPECT_EQ(grant.bounds.at(LeaseKnob::kGpuPowerLimit).max_share, 0.9);
  EXPECT_EQ(grant.leases, 16u);
  EXPECT_EQ(grant.sets_per_second.at(LeaseKnob::kGraphicsClock), 200);
  EXPECT_EQ(grant.rules, (std::vector<std::string>{"defaults", "researchers"}));
}

TEST(AccessRulesTest, ThePrimaryGroupCountsAsAGroup) {
  EXPECT_TRUE(GrantFor(Parsed(kExample), Local(1001, 100)).scopes.Has(Scope::kGpuControl));
  EXPECT_FALSE(GrantFor(Parsed(kExample), Local(1001, 101)).scopes.Has(Scope::kGpuControl));
}

TEST(AccessRulesTest, AllConditionsOfARuleMustHold) {
  const Configuration configuration = Parsed(kExample);
  Caller caller = Local(1001, 900);
  EXPECT_TRUE(GrantFor(configuration, caller).admin());
  caller.contained = true;
  EXPECT_FALSE(GrantFor(configuration, caller).admin());

  Caller pod = Local(0);
  pod.contained = true;
  pod.cgroup = "/kubelet/kubepods.slice/kubepods-podx.slice/cri-containerd-y.scope";
  EXPECT_TRUE(
      GrantFor(configuration, pod, {.pod_name_space = "team-a"}).scopes.Has(Scope::kGpuControl));
  EXPECT_FALSE(
      GrantFor(configuration, pod, {.pod_name_space = "team-b"}).scopes.Has(Scope::kGpuControl));
  EXPECT_FALSE(GrantFor(configuration, pod).scopes.Has(Scope::kGpuControl));
  pod.cgroup = "/user.slice";
  EXPECT_FALSE(
      GrantFor(configuration, pod, {.pod_name_space = "team-a"}).scopes.Has(Scope::kGpuControl));
}

TEST(AccessRulesTest, ScopesUniteAndTheStrictestBoundHolds) {
  Caller both = Local(1001, 900);
  both.groups = {100};
  const Grant grant = GrantFor(Parsed(kExample), both);
  EXPECT_TRUE(grant.admin());
  EXPECT_TRUE(grant.all_devices);
  EXPECT_EQ(grant.bounds.at(LeaseKnob::kGpuPowerLimit).min_watts, Watts(150));
}

TEST(AccessRulesTest, BoundsForEverybodyHoldForRootToo) {
  const Grant root = GrantFor(Parsed(kExample), Local(0));
  EXPECT_EQ(root.bounds.at(LeaseKnob::kGpuPowerLimit).min_watts, Watts(100));
}

TEST(AccessRulesTest, ARuleThatControlsWithoutDevicesMeansAll) {
  EXPECT_TRUE(
      GrantFor(Parsed("[[rule]]\nmatch = {}\nscopes = [\"gpu-control\"]\n"), Local(1)).all_devices);
  EXPECT_FALSE(
      GrantFor(Parsed("[[rule]]\nmatch = {}\nscopes = [\"cpu-read\"]\n"), Local(1)).all_devices);
}

TEST(AccessRulesTest, ARuleForReadersWidensNoDevices) {
  const Grant grant = GrantFor(Parsed(R"(
[[rule]]
match = { uids = [7] }
scopes = ["gpu-control"]
devices = ["GPU-1"]
[[rule]]
match = {}
scopes = ["gpu-read", "cpu-read", "job"]
devices = "all"
)"),
                               Local(7));
  EXPECT_FALSE(grant.all_devices);
  EXPECT_THAT(grant.devices, UnorderedElementsAre("GPU-1"));
}

TEST(AccessRulesTest, QuotasOfRulesReplaceDefaultsAndTheLowestHolds) {
  const Configuration configuration = Parsed(R"(
[defaults]
leases = 8
sets_per_second = { gpu_power_limit = 5, persistence = 1 }
[[rule]]
match = { groups = [1] }
leases = 1000
sets_per_second = { gpu_power_limit = 50 }
[[rule]]
match = { uids = [7] }
leases = 100
[[rule]]
match = { uids = [7] }
scopes = ["gpu-read"]
)");
  EXPECT_EQ(GrantFor(configuration, Local(3, 3)).leases, 8u);
  EXPECT_EQ(GrantFor(configuration, Local(3, 1)).leases, 1000u);
  const Grant both = GrantFor(configuration, Local(7, 1));
  EXPECT_EQ(both.leases, 100u);
  EXPECT_EQ(both.sets_per_second.at(LeaseKnob::kGpuPowerLimit), 50);
  EXPECT_EQ(both.sets_per_second.at(LeaseKnob::kPersistence), 1);
}

TEST(AccessRulesTest, OverTcpTheScopesOfTheTokenReplaceThoseOfRules) {
  const Configuration configuration = Parsed(R"(
[[rule]]
match = { subjects = ["ci"] }
scopes = ["admin"]
gpu_power_limit = { min_watts = 120 }
)");
  const Grant ci = GrantFor(configuration, Remote("ci", ScopeSet({Scope::kGpuControl})));
  EXPECT_EQ(ci.scopes, ScopeSet({Scope::kGpuControl}));
  EXPECT_EQ(ci.bounds.at(LeaseKnob::kGpuPowerLimit).min_watts, Watts(120));
  EXPECT_TRUE(ci.all_devices) << "no rule says which";
  const Grant other = GrantFor(configuration, Remote("x", ScopeSet({Scope::kCpuRead})));
  EXPECT_EQ(other.scopes, ScopeSet({Scope::kCpuRead}));
  EXPECT_FALSE(other.all_devices);
}

TEST(AccessRulesTest, ARuleMayNarrowTheDevicesOfAToken) {
  const Grant grant =
      GrantFor(Parsed("[[rule]]\nmatch = { subjects = [\"ci\"] }\ndevices = [\"GPU-1\"]\n"),
               Remote("ci", ScopeSet({Scope::kGpuControl})));
  EXPECT_FALSE(grant.all_devices);
  EXPECT_THAT(grant.devices, UnorderedElementsAre("GPU-1"));
}

TEST(AccessRulesTest, ATokenOnTheUnixSocketAddsToTheRules) {
  Caller caller = Local(1001);
  caller.token_scopes = ScopeSet({Scope::kCpuRead});
  EXPECT_EQ(GrantFor(DefaultConfiguration(), caller).scopes,
            ScopeSet({Scope::kGpuRead, Scope::kCpuRead}));
}

TEST(AccessRulesTest, PoliciesAndPeriodsAreRead) {
  const Configuration configuration = Parsed(R"(
foreign = "reassert"
stop_policy = "leave"
compat_hold_seconds = 60
max_token_lifetime_seconds = 86400
)");
  EXPECT_EQ(configuration.foreign, ForeignPolicy::kReassert);
  EXPECT_EQ(configuration.stop_policy, StopPolicy::kLeave);
  EXPECT_EQ(configuration.compat_hold, Seconds(60));
  EXPECT_EQ(configuration.max_token_lifetime, Seconds(86400));
  EXPECT_EQ(configuration.defaults.scopes, ScopeSet({Scope::kGpuRead})) << "as without a file";
}

TEST(AccessRulesTest, NamesOfGroupsAreLookedUp) {
  const struct group* own = ::getgrgid(0);
  if (own == nullptr) GTEST_SKIP() << "group 0 has no name on this machine";
  const auto rule = fmt::format("[[rule]]\nmatch = {{ groups = [\"{}\"] }}\n", own->gr_name);
  EXPECT_EQ(Parsed(rule).rules.at(0).match.groups, (std::vector<gid_t>{0}));
}

TEST(AccessRulesTest, AGroupThatIsNotKnownYetMatchesNobody) {
  const Configuration parsed =
      Parsed("[[rule]]\nscopes = [\"gpu-control\"]\nmatch = { groups = [\"no-such-group\"] }\n");
  EXPECT_EQ(parsed.rules.at(0).match.groups, (std::vector<gid_t>{kUnknownGroup}));
  EXPECT_THAT(parsed.unknown_groups,
              ElementsAre(HasSubstr("zeusd.toml:3: groups: there is no group \"no-such-group\"")));
  const Caller caller{.subject = "uid:1001", .uid = 1001, .gid = 100, .groups = {100, 65534}};
  EXPECT_THAT(GrantFor(parsed, caller).rules, Not(Contains("rule 1")));
  EXPECT_FALSE(GrantFor(parsed, caller).scopes.Has(Scope::kGpuControl));
}

TEST(AccessRulesTest, UnknownKeysAreRefusedWithLineAndFix) {
  EXPECT_THAT(Refusal("\n\nforein = \"respect\"\n"),
              HasSubstr("zeusd.toml:3: \"forein\" is no key of this file: did you mean foreign?"));
  EXPECT_THAT(Refusal("[defaults]\nscops = []\n"), HasSubstr(":2: "));
  EXPECT_THAT(Refusal("[[rule]]\nmatch = { uid = [1] }\n"), HasSubstr("did you mean uids?"));
  EXPECT_THAT(Refusal("[[rule]]\nmatch = {}\ngpu_power_limit = { min_hertz = 1 }\n"),
              HasSubstr(":3: \"min_hertz\" is no key of gpu_power_limit"));
  EXPECT_THAT(Refusal("[bounds]\nscopes = []\n"), HasSubstr("[bounds]"));
  EXPECT_THAT(Refusal("[defaults]\nmatch = {}\n"), HasSubstr("[defaults]"));
}

TEST(AccessRulesTest, MistakesAreRefusedWithTheirLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[[rule]\n", ":1: "},
      {"[defaults]\nscopes = [\"gpu\"]\n", ":2: scopes:"},
      {"[defaults]\nscopes = \"gpu-read\"\n", "must be a list"},
      {"rule = 1\n", "[[rule]]"},
      {"defaults = 1\n", "must be a table"},
      {"[[rule]]\nscopes = [\"admin\"]\n", "rule \"rule 1\" has no match: write match = {}"},
      {"[[rule]]\nmatch = { uids = [] }\n", "empty list"},
      {"[[rule]]\nmatch = { groups = [] }\n", "empty list"},
      {"[[rule]]\nmatch = { subjects = [] }\n", "empty list"},
      {"[[rule]]\nmatch = { cgroup = \"\" }\n", "empty"},
      {"[[rule]]\nmatch = { namespace = \"\" }\n", "empty"},
      {"[[rule]]\nmatch = { uids = [-1] }\n", "whole number"},
      {"[[rule]]\nmatch = { uids = [4294967295] }\n", "whole number"},
      {"[[rule]]\nmatch = { uids = [\"root\"] }\n", "whole number"},
      {"[[rule]]\nmatch = { contained = 1 }\n", "true or false"},
      {"[[rule]]\nmatch = {}\ndevices = []\n", "empty list"},
      {"[[rule]]\nmatch = {}\ndevices = \"some\"\n", "\"job\" or \"all\""},
      {"[[rule]]\nmatch = {}\ndevices = [\"0\"]\n", "UUIDs"},
      {"[[rule]]\nmatch = {}\ndevices = [\"all\"]\n", "UUIDs"},
      {"[[rule]]\nmatch = {}\nleases = 5000\n", "4096"},
      {"[[rule]]\nmatch = {}\nleases = 1.5\n", "whole number"},
      {"[[rule]]\nmatch = {}\ngpu_power_limit = 100\n", "must be a table"},
      {"[[rule]]\nmatch = {}\ngpu_power_limit = { min_watts = -1 }\n", ":3: min_watts is -1"},
      {"[[rule]]\nmatch = {}\ngpu_power_limit = { min_watts = nan }\n", "min_watts"},
      {"[[rule]]\nmatch = {}\ngpu_power_limit = { min_watts = \"100\" }\n", "must be a number"},
      {"[[rule]]\nmatch = {}\ncpu_power_limit = { max_share = 1.5 }\n", "max_share"},
      {"[[rule]]\nmatch = {}\ngraphics_clock = { min_watts = 1 }\n", "min_watts"},
      {"[[rule]]\nmatch = {}\nsets_per_second = { persistance = 1 }\n", "persistence?"},
      {"foreign = \"ignore\"\n", "\"respect\" or \"reassert\""},
      {"compat_hold_seconds = 0\n", "compat_hold_seconds"},
      {"max_token_lifetime_seconds = inf\n", "max_token_lifetime_seconds"},
      {"[bounds]\ncpu_energy_period_seconds = 0\n", "cpu_energy_period_seconds"},
      {"a = \"\xff\"\n", "zeusd.toml:1: "},
  };
  for (const auto& [toml, why] : cases) EXPECT_THAT(Refusal(toml), HasSubstr(why)) << toml;
}

TEST(AccessRulesTest, DeepNestingIsRefused) {
  EXPECT_NE(Refusal("a = " + std::string(100'000, '[')), "accepted");
  EXPECT_THAT(Refusal(std::string(1024 * 1024 + 1, '\n')), HasSubstr("larger"));
}

class ConfigurationFileTest : public ::testing::Test {
 protected:
  zeus::testing::TemporaryDirectory directory_;
};

TEST_F(ConfigurationFileTest, AFileIsReadAndItsMistakesNameIt) {
  const auto good = directory_.AddFile("zeusd.toml", kExample);
  ASSERT_EQ(::chmod(good.c_str(), 0644), 0);
  EXPECT_EQ(ReadConfiguration(good).value().rules.size(), 3u);
  const auto bad = directory_.AddFile("bad.toml", "x = 1\n");
  ASSERT_EQ(::chmod(bad.c_str(), 0644), 0);
  EXPECT_THAT(ReadConfiguration(bad).error().message, HasSubstr("bad.toml:1: "));
  EXPECT_EQ(ReadConfiguration(directory_.path() / "none").error().code, ErrorCode::kNotFound);
}

TEST_F(ConfigurationFileTest, AFileThatOthersCouldHaveWrittenIsRefused) {
  const auto file = directory_.AddFile("zeusd.toml", kExample);
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(ReadConfiguration(file).error().code, ErrorCode::kPermissionDenied);
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const auto link = directory_.AddLink("link.toml", file);
  EXPECT_EQ(ReadConfiguration(link).error().code, ErrorCode::kPermissionDenied);
}

}  // namespace access_rules_test
}  // namespace zeus::daemon
