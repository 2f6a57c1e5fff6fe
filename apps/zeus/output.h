#pragma once

#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Print text for people; control sequences in it are escaped (zeus/base/terminal_text.h). All text
// with names, reasons or messages from outside must go through these, or through Show() of
// terminal.h, which breaks long lines and has colours.
void PrintText(std::string_view text);
void PrintErrorText(std::string_view text);
// Prints JSON to standard output without escaping, so that it stays valid.
void PrintJsonText(std::string_view json);

// Prints JSON with an indentation of two spaces and a newline. Bytes that are not UTF-8 are
// replaced.
void PrintJson(const Json& json);

// Returns kUnavailable when the printed text did not arrive because the disk is full or the reader
// has gone.
Status FlushOutput();

// Returns false when standard output is a pipe or socket whose other end was closed.
bool OutputHasReader();

// Discards everything printed from now on without an error, because the reader has gone.
void AbandonOutput();

}  // namespace zeus::cli
