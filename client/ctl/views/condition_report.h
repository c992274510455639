// Conditions in the three formats.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/line/environment.h"
#include "client/ctl/text/json_writer.h"
#include "tacho/v1/conditions.pb.h"

namespace tacho::ctl {

struct ConditionTable {
  bool jobs = true;    // With the name of the job.
  bool status = true;  // With the status; else all hold.
};

// A line each, and below it what it says, in lines that fit.
void PrintConditions(const Environment& env, const std::vector<v1::Condition>& conditions,
                     const ConditionTable& table);

// One object. Its members are listed in `tachoctl help conditions`.
void WriteCondition(JsonWriter* json, const v1::Condition& condition);
// {"conditions": [...]}
void WriteConditionsJson(std::ostream& out, const std::vector<v1::Condition>& conditions);

void WriteConditionsCsv(std::ostream& out, const std::vector<v1::Condition>& conditions);
// Lines without the headings.
void WriteConditionsCsvRows(std::ostream& out, const std::vector<v1::Condition>& conditions);

// "12:00:05 bert Stalled critical step 307 host-5 task 20: It stopped." as it is now; by what
// ended it if it does not hold.
std::string ConditionLine(const v1::Condition& condition, absl::TimeZone zone);

// "critical Stalled at step 307, for 2m 10s: It stopped."
std::string ConditionSummary(const v1::Condition& condition, absl::Time now);

// How long it has been so, or has not; "" if nobody knows.
std::string ConditionAge(const v1::Condition& condition, absl::Time now);

}  // namespace tacho::ctl
