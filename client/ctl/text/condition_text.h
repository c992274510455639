// Conditions of jobs, as words.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tacho/v1/conditions.pb.h"

namespace tacho::ctl {

// All conditions that this tachoctl knows, in the order of the messages that configure them
// (tacho/config/v1/conditions_*.proto).
const std::vector<std::string>& ConditionNames();

// "true", "false", "unknown".
std::string StatusName(v1::ConditionStatus status);

// "info", "warning", "critical"; "" if the condition has no severity.
std::string SeverityName(v1::ConditionSeverity severity);
// CONDITION_SEVERITY_UNSPECIFIED for any other word.
v1::ConditionSeverity SeverityOf(absl::string_view name);

inline bool Holds(const v1::Condition& condition) {
  return condition.status() == v1::CONDITION_STATUS_TRUE;
}

// The first culprit: "host-5 task 20 chip 0 loss (+3 more)"; "" without one.
std::string WhereText(const v1::Condition& condition);

// Those that hold.
std::vector<v1::Condition> Holding(const std::vector<v1::Condition>& conditions);

// Conditions that hold come first; within each job, the most severe one.
void SortConditions(std::vector<v1::Condition>* conditions);

}  // namespace tacho::ctl
