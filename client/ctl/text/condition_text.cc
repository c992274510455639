#include "client/ctl/text/condition_text.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "tacho/config/v1/conditions_curves.pb.h"
#include "tacho/config/v1/conditions_hardware.pb.h"
#include "tacho/config/v1/conditions_progress.pb.h"

namespace tacho::ctl {

const std::vector<std::string>& ConditionNames() {
  static const auto* const names = [] {
    auto* const all = new std::vector<std::string>;
    for (const google::protobuf::Descriptor* group :
         {config::v1::ConditionsProgress::descriptor(), config::v1::ConditionsCurves::descriptor(),
          config::v1::ConditionsHardware::descriptor()}) {
      for (int i = 0; i < group->nested_type_count(); ++i) {
        all->push_back(group->nested_type(i)->name());
      }
    }
    return all;
  }();
  return *names;
}

std::string StatusName(v1::ConditionStatus status) {
  switch (status) {
    case v1::CONDITION_STATUS_TRUE:
      return "true";
    case v1::CONDITION_STATUS_FALSE:
      return "false";
    default:
      return "unknown";
  }
}

std::string SeverityName(v1::ConditionSeverity severity) {
  switch (severity) {
    case v1::CONDITION_SEVERITY_INFO:
      return "info";
    case v1::CONDITION_SEVERITY_WARNING:
      return "warning";
    case v1::CONDITION_SEVERITY_CRITICAL:
      return "critical";
    default:
      return "";
  }
}

v1::ConditionSeverity SeverityOf(absl::string_view name) {
  for (const v1::ConditionSeverity severity :
       {v1::CONDITION_SEVERITY_INFO, v1::CONDITION_SEVERITY_WARNING,
        v1::CONDITION_SEVERITY_CRITICAL}) {
    if (SeverityName(severity) == name) return severity;
  }
  return v1::CONDITION_SEVERITY_UNSPECIFIED;
}

std::string WhereText(const v1::Condition& condition) {
  if (condition.culprits().empty()) return "";
  const v1::ConditionCulprit& first = condition.culprits(0);
  std::string text = first.host();
  const auto add = [&text](absl::string_view what) {
    absl::StrAppend(&text, text.empty() ? "" : " ", what);
  };
  if (first.has_task()) add(absl::StrCat("task ", first.task()));
  if (!first.chip().empty()) add(absl::StrCat("chip ", first.chip()));
  if (!first.metric().empty()) add(first.metric());
  const int more = condition.culprits_size() - 1;
  if (more > 0) absl::StrAppend(&text, " (+", more, " more)");
  return text;
}

std::vector<v1::Condition> Holding(const std::vector<v1::Condition>& conditions) {
  std::vector<v1::Condition> holding;
  std::copy_if(conditions.begin(), conditions.end(), std::back_inserter(holding), Holds);
  return holding;
}

void SortConditions(std::vector<v1::Condition>* conditions) {
  std::stable_sort(conditions->begin(), conditions->end(),
                   [](const v1::Condition& a, const v1::Condition& b) {
                     return std::make_tuple(!Holds(a), a.job(), -int{a.severity()}) <
                            std::make_tuple(!Holds(b), b.job(), -int{b.severity()});
                   });
}

}  // namespace tacho::ctl
