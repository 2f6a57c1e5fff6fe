#pragma once

#include "apps/zeus/commands.h"
#include "zeus/session/job_source.h"

namespace zeus::cli {

// Where recurring jobs live, as typed.
using JobSourceFlags = JobSourceOptions;

// Declares --server, --database, --token-file and --ca-file on `verb`.
void AddJobSourceFlags(Verb verb, JobSourceFlags& flags);

}  // namespace zeus::cli
