#include "zeus/recording/scrubber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "zeus/base/json.h"

namespace zeus::recording {
namespace scrubber_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ScrubberTest : public ::testing::Test {
 protected:
  std::string Scrub(std::string_view text) const { return scrubber_.Text(text); }

  const IdentityMask mask_{Identities::kHidden, 7};
  const Scrubber scrubber_{mask_, {{"/srv/people/anna", "~"}, {"anna", "user"}, {"fir", "host"}}};
};

TEST_F(ScrubberTest, SecretsOfSettingsAreRemoved) {
  for (const char* line : {"token = \"hunter2\"", "ZEUSD_TOKEN=hunter2", "password: hunter2",
                           "\"db_password\": \"hunter2\"", "--token hunter2",
                           "Authorization: Bearer hunter2", "sent Bearer hunter2 to it"})
    EXPECT_THAT(Scrub(line), Not(HasSubstr("hunter2"))) << line;
}

TEST_F(ScrubberTest, DatabasePasswordsAreRemovedFromUrls) {
  const std::string scrubbed = Scrub("postgresql://anna:p@ss@db/zeus?x=1 opened");
  EXPECT_EQ(scrubbed, "postgresql://removed@db/zeus?x=1 opened");
}

TEST_F(ScrubberTest, UsersFoldersAndMachinesAreRenamed) {
  EXPECT_EQ(Scrub("/srv/people/anna/x of anna on fir, not firm"), "~/x of user on host, not firm");
  EXPECT_EQ(Scrub("/home/berta.b/model"), "/home/user/model");
  EXPECT_EQ(Scrub("from 10.1.2.3:80 to 127.0.0.1:81"), "from address:80 to 127.0.0.1:81");
}

TEST_F(ScrubberTest, LongWordsOfLettersAndDigitsAreTakenForTokens) {
  EXPECT_EQ(Scrub("got zt_4f9a0c11d2e84b7799aa here"), "got removed here");
  EXPECT_EQ(Scrub("Linux 6.1.0-13-cloud-amd64, driver 535.183.01-server"),
            "Linux 6.1.0-13-cloud-amd64, driver 535.183.01-server");
  EXPECT_EQ(Scrub("nvmlDeviceGetTotalEnergyConsumption"), "nvmlDeviceGetTotalEnergyConsumption");
}

TEST_F(ScrubberTest, AUuidKeepsOneFalseName) {
  const std::string uuid = "GPU-12345678-1234-1234-1234-123456789012";
  const std::string hidden = Scrub(uuid);
  EXPECT_EQ(hidden.size(), uuid.size());
  EXPECT_NE(hidden, uuid);
  EXPECT_EQ(Scrub("(" + uuid + ")"), "(" + hidden + ")");
  EXPECT_EQ(hidden, mask_.Text(uuid));
}

TEST_F(ScrubberTest, DocumentsAreScrubbedInEveryString) {
  const Json document{{"api_key", 17}, {"a", {{"path", "/srv/people/anna"}, {"n", 3}}}};
  EXPECT_EQ(scrubber_.Document(document),
            (Json{{"api_key", "removed"}, {"a", {{"path", "~"}, {"n", 3}}}}));
}

}  // namespace
}  // namespace scrubber_test
}  // namespace zeus::recording
