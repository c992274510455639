// Conditions in the three formats.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/line/environment.h"
#include "client/ctl/text/json_writer.h"
#include "tacho/v1/conditions.pb.h"

namespace tacho::ctl {

struct ConditionTable {
  bool jobs = true;    // Show the name of the job.
  bool status = true;  // Show the status; false if all conditions hold.
};

// One line for each condition, and below it its message, wrapped.
void PrintConditions(const Environment& env, const std::vector<v1::Condition>& conditions,
                     const ConditionTable& table);

// One object; `tachoctl help conditions` lists its members.
void WriteCondition(JsonWriter* json, const v1::Condition& condition);
// {"conditions": [...], "profiles": [...]}; `profiles` are those of the answer.
void WriteConditionsJson(std::ostream& out, const std::vector<v1::Condition>& conditions,
                         const v1::ConditionsResponse& answer);

// A line for each job: "bert: profile fast, chosen by the collector 2h 5m ago: it records …"
void PrintProfiles(const Environment& env, const v1::ConditionsResponse& answer);

void WriteConditionsCsv(std::ostream& out, const std::vector<v1::Condition>& conditions);
// Lines without the headings.
void WriteConditionsCsvRows(std::ostream& out, const std::vector<v1::Condition>& conditions);

// "12:00:05 bert Stalled critical step 307 host-5 task 20: It stopped." or how it
// ended, if it no longer holds.
std::string ConditionLine(const v1::Condition& condition, absl::TimeZone zone);

// "critical Stalled at step 307, for 2m 10s: It stopped."
std::string ConditionSummary(const v1::Condition& condition, absl::Time now);

// How long the status has lasted; "" if that is not known.
std::string ConditionAge(const v1::Condition& condition, absl::Time now);

}  // namespace tacho::ctl
