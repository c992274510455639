#include "server/marks/mark_change.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/ingest/text_rules.h"
#include "server/query/read/job_marks.h"
#include "server/query/read/selection.h"

namespace tacho::server::marks {
namespace {

using query::AttributeMap;

// The most bytes that an agent may give an attribute's name.
constexpr size_t kMaxNameBytes = 128;
constexpr absl::string_view kTooManyTags = "has more than 256 tags: send several requests";
static_assert(kMaxTagsOfRequest == 256);

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

absl::Status CheckTag(absl::string_view field, const std::string& tag) {
  std::string problem = ingest::TextProblem(tag, 1, kMaxTagBytes);
  if (problem.empty() && std::any_of(tag.begin(), tag.end(), [](char c) {
        return c == ',' || IsSpace(c) || ingest::IsControl(c);
      })) {
    problem = absl::StrCat("\"", tag, "\" has a space, a comma or a control character");
  }
  return problem.empty() ? absl::OkStatus() : errors::InvalidFieldError(field, problem);
}

absl::Status CheckRequest(const v1::ChangeMarksRequest& request) {
  if (request.job().empty()) return errors::InvalidFieldError("job", "is required");
  if (static_cast<size_t>(request.add_tags_size()) > kMaxTagsOfRequest) {
    return errors::InvalidFieldError("add_tags", kTooManyTags);
  }
  if (static_cast<size_t>(request.remove_tags_size()) > kMaxTagsOfRequest) {
    return errors::InvalidFieldError("remove_tags", kTooManyTags);
  }
  for (const std::string& tag : request.add_tags()) {
    TACHO_RETURN_IF_ERROR(CheckTag("add_tags", tag));
  }
  for (const std::string& tag : request.remove_tags()) {
    // A trainer may have set a tag of another form, which must not stay forever.
    const std::string problem = ingest::TextProblem(tag, 1, kMaxNameBytes);
    if (!problem.empty()) return errors::InvalidFieldError("remove_tags", problem);
  }
  std::string problem = ingest::TextProblem(request.group(), 0, kMaxGroupBytes);
  if (problem.empty()) problem = ingest::ControlProblem(request.group());
  if (!problem.empty()) return errors::InvalidFieldError("group", problem);
  problem = ingest::TextProblem(request.note(), 0, kMaxNoteBytes);
  if (!problem.empty()) return errors::InvalidFieldError("note", problem);
  return absl::OkStatus();
}

std::string TagAttribute(const std::string& tag) { return absl::StrCat(query::kTagPrefix, tag); }

// The attributes to set, by attempt; an empty value removes its key.
using ChangeByAttempt = std::map<uint32_t, AttributeMap>;

ChangeByAttempt PlanOf(const std::vector<storage::AttemptInfo>& attempts,
                       const v1::ChangeMarksRequest& request) {
  ChangeByAttempt plan;
  const auto remove = [&](const std::string& name) {
    for (const storage::AttemptInfo& one : attempts) {
      if (one.attributes.contains(name)) plan[one.attempt][name] = "";
    }
  };
  const uint32_t latest = attempts.empty() ? 0 : attempts.back().attempt;
  const auto set = [&](const std::string& name, const std::string& value) {
    if (value.empty()) return remove(name);
    plan[latest][name] = value;
  };
  for (const std::string& tag : request.remove_tags()) remove(TagAttribute(tag));
  for (const std::string& tag : request.add_tags()) set(TagAttribute(tag), "1");
  if (request.has_group()) set(query::kGroupAttribute, request.group());
  if (request.has_note()) set(query::kNoteAttribute, request.note());
  return plan;
}

absl::Status CheckNumber(const v1::JobMarks& now, const v1::ChangeMarksRequest& request) {
  std::set<std::string> tags(now.tags().begin(), now.tags().end());
  for (const std::string& tag : request.remove_tags()) tags.erase(tag);
  const size_t before = tags.size();
  tags.insert(request.add_tags().begin(), request.add_tags().end());
  if (tags.size() <= std::max(before, kMaxTags)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("add_tags: the job \"", request.job(),
                                                   "\" would have ", tags.size(), " tags; at most ",
                                                   kMaxTags, " are allowed: remove some"));
}

// A bucket that is away may hold an acknowledgement up for an hour.
constexpr absl::Duration kPatience = absl::Seconds(20);

// Waits for several messages to become durable. The store may settle them after the wait is over.
class Commits {
 public:
  storage::AppendDone Expect() {
    absl::MutexLock lock(&state_->mutex);
    ++state_->open;
    return [state = state_](const absl::Status& status) {
      absl::MutexLock done(&state->mutex);
      state->first.Update(status);
      --state->open;
    };
  }
  //   UNAVAILABLE  not all are durable in time.
  absl::Status Wait() {
    absl::MutexLock lock(&state_->mutex);
    const auto settled = absl::Condition(
        +[](int* open) { return *open == 0; }, &state_->open);
    if (AwaitFor(&state_->mutex, settled, kPatience)) return state_->first;
    return errors::ErrorOf(errors::Failure::kOverloaded,
                           "the change is not acknowledged by the disk or the bucket yet; it may "
                           "still take effect: look, and try again later");
  }

 private:
  struct State {
    absl::Mutex mutex;
    int open ABSL_GUARDED_BY(mutex) = 0;
    absl::Status first ABSL_GUARDED_BY(mutex);  // The first error.
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

absl::StatusOr<v1::JobMarks> ChangeMarks(storage::Store& store,
                                         const v1::ChangeMarksRequest& request) {
  TACHO_RETURN_IF_ERROR(CheckRequest(request));
  TACHO_ASSIGN_OR_RETURN(const auto attempts, store.Attempts(request.job()));
  // A job that has only registered series has none either.
  if (attempts.empty() && !store.FindJob(request.job()).has_value()) {
    return query::NoSuchJob(store, request.job());
  }
  TACHO_RETURN_IF_ERROR(CheckNumber(query::MarksOf(query::MergedAttributes(attempts)), request));
  Commits commits;
  for (auto& [attempt, values] : PlanOf(attempts, request)) {
    store.AppendAttributes({}, {request.job(), attempt, values}, commits.Expect());
  }
  TACHO_RETURN_IF_ERROR(commits.Wait());
  TACHO_ASSIGN_OR_RETURN(const auto now, store.Attempts(request.job()));
  return query::MarksOf(query::MergedAttributes(now));
}

}  // namespace tacho::server::marks
