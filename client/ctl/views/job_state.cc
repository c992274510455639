#include "client/ctl/views/job_state.h"

#include "absl/strings/str_cat.h"

namespace tacho::ctl {

std::string StateName(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_RUNNING:
      return "running";
    case v1::JOB_STATE_SILENT:
      return "silent";
    case v1::JOB_STATE_ENDED:
      return "ended";
    case v1::JOB_STATE_REPLACED:
      return "replaced";
    default:
      return "";
  }
}

v1::JobState StateOf(absl::string_view name) {
  for (const v1::JobState state :
       {v1::JOB_STATE_RUNNING, v1::JOB_STATE_SILENT, v1::JOB_STATE_ENDED, v1::JOB_STATE_REPLACED}) {
    if (StateName(state) == name) return state;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

std::string StepRangesText(const google::protobuf::RepeatedPtrField<v1::StepRange>& ranges) {
  std::string text;
  for (const v1::StepRange& range : ranges) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", range.begin());
    if (range.end() != range.begin()) absl::StrAppend(&text, "..", range.end());
  }
  return text;
}

}  // namespace tacho::ctl
