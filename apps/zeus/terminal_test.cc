#include "apps/zeus/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <map>

#include "zeus/base/file_descriptor.h"

namespace zeus::cli {
namespace terminal_test {

Environment EnvironmentOf(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

// A pseudo-terminal of 80 columns.
class TerminalTest : public ::testing::Test {
 protected:
  TerminalTest() {
    ::grantpt(master_.get());
    ::unlockpt(master_.get());
    terminal_.emplace(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY));
    const ::winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(terminal_->get(), TIOCSWINSZ, &size);
  }

  Terminal Seen(std::map<std::string, std::string> variables) {
    return DescribeTerminal(terminal_->get(), EnvironmentOf(std::move(variables)));
  }

  FileDescriptor master_{::posix_openpt(O_RDWR | O_NOCTTY)};
  std::optional<FileDescriptor> terminal_;
};

TEST_F(TerminalTest, ATerminalHasColoursUnlessTheUserDoesNotWantThem) {
  EXPECT_TRUE(Seen({{"TERM", "xterm"}}).colours);
  EXPECT_TRUE(Seen({{"TERM", "xterm"}, {"NO_COLOR", ""}}).colours);
  EXPECT_FALSE(Seen({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).colours);
  EXPECT_TRUE(Seen({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).redraws);
}

TEST_F(TerminalTest, ADumbTerminalGetsNoControlSequences) {
  const Terminal dumb = Seen({{"TERM", "dumb"}});
  EXPECT_TRUE(dumb.is_terminal);
  EXPECT_FALSE(dumb.redraws);
  EXPECT_FALSE(dumb.colours);
  EXPECT_EQ(Painted("yes", Colour::kGreen, dumb), "yes");
  EXPECT_EQ(Painted("yes", Colour::kGreen, Seen({})), "\x1b[32myes\x1b[0m");
}

TEST_F(TerminalTest, ItsWidthIsWhatItSaysOrColumns) {
  EXPECT_EQ(Seen({}).columns, 80U);
  EXPECT_EQ(Seen({{"COLUMNS", "60"}}).columns, 60U);
  EXPECT_EQ(Seen({{"COLUMNS", "3"}}).columns, 40U);
  EXPECT_EQ(Seen({{"COLUMNS", "many"}}).columns, 80U);
}

TEST(TerminalOfAFileTest, AFileHasNeitherColoursNorAWidthOfItsOwn) {
  const FileDescriptor file(::open("/dev/null", O_WRONLY));
  const Terminal terminal = DescribeTerminal(file.get(), EnvironmentOf({{"TERM", "xterm"}}));
  EXPECT_FALSE(terminal.is_terminal || terminal.redraws || terminal.colours);
  EXPECT_EQ(terminal.columns, 100U);
}

TEST(LocaleTest, TheFirstVariableThatIsSetDecides) {
  EXPECT_TRUE(LocaleIsUnicode(EnvironmentOf({})));
  EXPECT_TRUE(LocaleIsUnicode(EnvironmentOf({{"LANG", "de_DE.UTF-8"}})));
  EXPECT_TRUE(LocaleIsUnicode(EnvironmentOf({{"LC_ALL", "C.utf8"}, {"LANG", "C"}})));
  EXPECT_FALSE(LocaleIsUnicode(EnvironmentOf({{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}})));
  EXPECT_FALSE(LocaleIsUnicode(EnvironmentOf({{"LC_ALL", ""}, {"LC_CTYPE", "POSIX"}})));
}

TEST(InAsciiTest, OwnCharactersAreReplacedAndThoseOfOthersStay) {
  EXPECT_EQ(InAscii("12 ± 3 J"), "12 +- 3 J");
  EXPECT_EQ(InAscii("33 °C"), "33 deg C");
  EXPECT_EQ(InAscii("1.5 µs"), "1.5 us");
  EXPECT_EQ(InAscii("日本"), "日本");
  EXPECT_EQ(InAscii(""), "");
}

}  // namespace terminal_test
}  // namespace zeus::cli
