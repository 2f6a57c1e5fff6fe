#pragma once

namespace zeus::python {

// In a handler of an exception, with the GIL held: C++ goes on, but if it was KeyboardInterrupt it
// is raised again as soon as Python code runs.
void KeepInterrupt();

}  // namespace zeus::python
