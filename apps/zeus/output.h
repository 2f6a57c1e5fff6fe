#pragma once

#include <string_view>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus::cli {

// Tables and lines for people, as they are: what a terminal would obey is escaped
// (zeus/base/terminal_text.h). Everything with names, reasons or messages from outside goes through
// these, or through Show() of terminal.h, which breaks long lines and has colours.
void PrintText(std::string_view text);
void PrintErrorText(std::string_view text);
// JSON, on standard output, that stays JSON.
void PrintJsonText(std::string_view json);

// Two-space indentation and a newline: for people and programs. Bytes that are not UTF-8 are
// replaced.
void PrintJson(const Json& json);

// Whether everything printed so far arrived: kUnavailable when the disk is full or the reader gone.
Status FlushOutput();

// False when standard output is a pipe or socket whose other end was closed.
bool OutputHasReader();

// Nobody reads any more: what is still printed goes nowhere, and that is no error.
void AbandonOutput();

}  // namespace zeus::cli
