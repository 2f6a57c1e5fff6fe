#pragma once

#include <functional>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::python {

// Asks `done`, without the GIL, until it holds or `seconds` are over; whether it did. Ctrl-C ends
// the wait with KeyboardInterrupt. Throws Failure for a time that is negative or not a number.
bool WaitUntil(const std::function<bool()>& done, double seconds);

// In a handler of an exception, with the GIL held: C++ goes on, but what is no Exception, such as
// KeyboardInterrupt and SystemExit, is raised again as soon as Python code runs. Hence the last
// thing to do: also what makes a text of the exception runs Python code.
void KeepInterrupt();

// The error for it, see CurrentPythonError(); an interrupt is kept.
Error CaughtError(std::string_view doing);

}  // namespace zeus::python
