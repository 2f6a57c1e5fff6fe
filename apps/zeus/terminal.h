#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "zeus/base/file.h"

namespace zeus::cli {

// How an output of this process reaches the person who reads it.
struct Terminal {
  bool is_terminal = false;  // Else a file or a pipe.
  bool redraws = false;      // A terminal that obeys control sequences, unlike TERM=dumb.
  bool colours = false;      // The same, and NO_COLOR is not set (https://no-color.org).
  std::size_t columns = 0;   // At least 40; 100 for files and pipes.
};

// The present size of a terminal in characters; nullopt for a file, a pipe, and a terminal that
// does not know its size (a serial line, an editor's).
struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};
std::optional<TerminalSize> SizeOfTerminal(int descriptor);

// `descriptor` is 1 for standard output, 2 for standard error. COLUMNS overrides the width.
Terminal DescribeTerminal(int descriptor, const Environment& environment = ProcessEnvironment());

// Whether the reader's locale has characters beyond ASCII: the first of LC_ALL, LC_CTYPE and LANG
// that is set says so. Where none is set, as in most containers, it has them: terminals of today
// do.
bool LocaleIsUnicode(const Environment& environment = ProcessEnvironment());

// The characters beyond ASCII that Zeus itself writes, in ASCII: "±" becomes "+-". Others stay as
// they are: they came from outside, and only their reader knows what they mean.
std::string InAscii(std::string_view text);

enum class Colour { kGreen = 32, kYellow = 33, kRed = 31 };

// Returns the text in that colour where `terminal` shows colours.
std::string Painted(std::string_view text, Colour colour, const Terminal& terminal);

// Writes text for people: what a terminal would obey is escaped (zeus/base/terminal_text.h),
// colours of Painted() excepted. On a terminal, lines that are too long for it are broken at
// blanks.
void Show(std::FILE* stream, const std::string& text);

// From now on standard output and standard error are written in ASCII, see InAscii(). Call it once,
// at the start of a program whose reader's locale is not Unicode.
void WriteInAscii();

}  // namespace zeus::cli
