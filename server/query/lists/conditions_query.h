// Query.Conditions: the part of the board that a request asks for, as messages.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "re2/re2.h"
#include "server/conditions/condition_board.h"
#include "server/security/rights.h"
#include "storage/store.h"
#include "tacho/v1/conditions.pb.h"

namespace tacho::server::query {

// Immutable, thread-safe.
class ConditionFilter {
 public:
  // From a ConditionsRequest or a WatchConditionsRequest.
  //   INVALID_ARGUMENT  the text names the field.
  template <typename Request>
  static absl::StatusOr<ConditionFilter> Create(const Request& request);

  bool WantsJob(const std::string& job) const;
  bool Wants(const conditions::JudgedCondition& condition) const;  // The job is wanted.

 private:
  std::string job_;
  std::shared_ptr<const RE2> pattern_;  // Null: every job.
  std::set<std::string> conditions_;    // None: every one.
  std::set<int> statuses_;
};

void FillCondition(const conditions::JudgedCondition& from, v1::Condition* to);

// Only of jobs that `rights` include.
//   NOT_FOUND  there is no such job.
absl::Status ListConditions(const storage::Store& store, const conditions::ConditionBoard& board,
                            const v1::ConditionsRequest& request, const security::Rights& rights,
                            v1::ConditionsResponse* response);

}  // namespace tacho::server::query
