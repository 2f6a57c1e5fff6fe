#pragma once

#include <functional>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::python {

// Polls `done` without the GIL until it is true or `seconds` are over; returns whether it became
// true. Ctrl-C ends the wait with KeyboardInterrupt. Throws Failure for a time that is negative or
// NaN.
bool WaitUntil(const std::function<bool()>& done, double seconds);

// Must be called in a handler of an exception, with the GIL held, if C++ continues: an exception
// that is not an Exception, such as KeyboardInterrupt or SystemExit, is raised again as soon as
// Python code runs. Must be the last call of the handler, because even making a text of the
// exception runs Python code.
void KeepInterrupt();

// Returns CurrentPythonError(), and calls KeepInterrupt().
Error CaughtError(std::string_view doing);

}  // namespace zeus::python
