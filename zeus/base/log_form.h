#pragma once

// How messages of log.h look. Apart from it, since only programs choose: text, or with SetForm() or
// ZEUS_LOG_FORMAT=json one JSON object in each line:
// {"time":"2026-03-01T12:00:00.250Z","level":"warning","program":"zeus","message":"…"}
namespace zeus::log {

enum class Form { kText, kJson };

// Thread-safe.
void SetForm(Form form);
Form CurrentForm();

}  // namespace zeus::log
