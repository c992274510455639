// States of jobs and attempts, as words.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// "running", "silent", "ended", "replaced"; "" if the collector did not say.
std::string StateName(v1::JobState state);

// JOB_STATE_UNSPECIFIED for a word that is none of these.
v1::JobState StateOf(absl::string_view name);

// "0..99, 150"; "" if there are none.
std::string StepRangesText(const google::protobuf::RepeatedPtrField<v1::StepRange>& ranges);

}  // namespace tacho::ctl
