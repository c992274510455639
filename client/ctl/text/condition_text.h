// Conditions of jobs, as words.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tacho/v1/conditions.pb.h"

namespace tacho::ctl {

// Every condition there is, in the order of docs/conditions.md.
const std::vector<std::string>& ConditionNames();

// "true", "false", "unknown".
std::string StatusName(v1::ConditionStatus status);

// "info", "warning", "critical"; "" if there is none.
std::string SeverityName(v1::ConditionSeverity severity);
// CONDITION_SEVERITY_UNSPECIFIED for a word that is none of these.
v1::ConditionSeverity SeverityOf(absl::string_view name);

inline bool Holds(const v1::Condition& condition) {
  return condition.status() == v1::CONDITION_STATUS_TRUE;
}

// Whom it is about: "host-5 task 20 chip 0 loss (+3 more)"; "" if nobody.
std::string WhereText(const v1::Condition& condition);

// Those that hold.
std::vector<v1::Condition> Holding(const std::vector<v1::Condition>& conditions);

// Those that hold come first, of each job the most severe one first.
void SortConditions(std::vector<v1::Condition>* conditions);

}  // namespace tacho::ctl
