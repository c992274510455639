// The book of pushed groups. A plan is made under the lock and carried out without it, so two
// pushes of one group may overlap: what the later one replaces and its plan does not know is left
// to Due().
#include "server/interop/push_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/errors/error_table.h"

namespace tacho::server::interop {
namespace {

// What a table's entry takes besides its texts.
constexpr size_t kEntryBytes = 100;
constexpr int64_t kSecondNs = 1'000'000'000;

std::string NameOfGroup(const storage::Labels& labels) {
  std::string name;
  for (const auto& [label, value] : labels) AppendLabel(label, value, &name);
  return name;
}

// Whether a push replaces a series of this name.
class Replaced {
 public:
  Replaced(PushChange change, const std::vector<PushedSeries>& series) : change_(change) {
    for (const PushedSeries& one : series) {
      keys_.insert(one.key);
      names_.insert(one.name);
    }
  }
  bool Has(absl::string_view key) const { return keys_.contains(key); }
  bool Ends(absl::string_view key, absl::string_view name) const {
    return !Has(key) && (change_ != PushChange::kNames || names_.contains(name));
  }

 private:
  const PushChange change_;
  absl::flat_hash_set<absl::string_view> keys_;
  absl::flat_hash_set<absl::string_view> names_;
};

}  // namespace

absl::StatusOr<PushPlan> PushGroups::Begin(const storage::Labels& group, PushChange change,
                                           const std::vector<PushedSeries>& series,
                                           int64_t now_ns) {
  PushPlan plan{.group = NameOfGroup(group), .change = change, .time_ns = now_ns};
  const Replaced replaced(change, series);
  size_t more = 0;
  for (const PushedSeries& one : series) more += one.key.size() + one.name.size() + kEntryBytes;
  absl::MutexLock lock(&mutex_);
  const auto known = groups_.find(plan.group);
  const bool is_new = known == groups_.end();
  if (change != PushChange::kEnd) {
    // What is replaced goes only after the new is stored, so both have to fit.
    const bool full = is_new && groups_.size() >= options_.max_groups;
    if (full || bytes_ + more > options_.max_bytes) {
      return errors::ErrorOf(
          errors::Failure::kOverloaded,
          full
              ? absl::StrCat("there are ", options_.max_groups,
                             " groups of pushes already: DELETE some, or lower interop.push_expiry")
              : absl::StrCat("the groups of pushes would take more than ", options_.max_bytes,
                             " bytes: DELETE some, or lower interop.push_expiry"));
    }
  }
  if (is_new) return plan;
  Group& had = known->second;
  // Two pushes in one tick of the clock are two moments. A clock that was set back far is believed.
  if (plan.time_ns <= had.newest_ns && had.newest_ns - plan.time_ns < kSecondNs) {
    plan.time_ns = had.newest_ns + 1;
  }
  had.newest_ns = plan.time_ns;
  plan.turn = had.turn;
  for (const auto& [key, name] : had.series) {
    if (replaced.Ends(key, name)) plan.ended.push_back(key);
  }
  for (const std::string& key : had.leaving) {
    if (!replaced.Has(key)) plan.ended.push_back(key);
  }
  return plan;
}

void PushGroups::Settled(const PushPlan& plan, const std::vector<PushedSeries>& series,
                         absl::Time now) {
  const Replaced replaced(plan.change, series);
  absl::MutexLock lock(&mutex_);
  auto known = groups_.find(plan.group);
  if (plan.change == PushChange::kEnd) {
    // A push that came meanwhile goes on; Due() ends again what it does not have.
    if (known == groups_.end() || known->second.turn != plan.turn) return;
  } else if (known == groups_.end()) {
    if (groups_.size() >= options_.max_groups) return;
    known = groups_.try_emplace(plan.group).first;
    known->second.newest_ns = plan.time_ns;
  }
  Group& group = known->second;
  for (const std::string& key : plan.ended) {
    group.series.erase(key);
    group.leaving.erase(key);
  }
  if (plan.change != PushChange::kEnd) {
    for (const auto& [key, name] : group.series) {
      if (replaced.Ends(key, name)) group.leaving.insert(key);
    }
    for (const std::string& key : group.leaving) group.series.erase(key);
    for (const PushedSeries& one : series) {
      group.leaving.erase(one.key);
      group.series.insert_or_assign(one.key, one.name);
    }
    group.pushed = now;
    ++group.turn;
  }
  Weigh(plan.group, &group);
  if ((group.series.empty() && group.leaving.empty()) || bytes_ > options_.max_bytes) {
    bytes_ -= group.bytes;
    groups_.erase(known);
  }
}

void PushGroups::Weigh(const std::string& name, Group* group) {
  bytes_ -= group->bytes;
  group->bytes = name.size() + kEntryBytes;
  for (const auto& [key, of] : group->series) group->bytes += key.size() + of.size() + kEntryBytes;
  for (const std::string& key : group->leaving) group->bytes += key.size() + kEntryBytes;
  bytes_ += group->bytes;
}

std::vector<PushPlan> PushGroups::Due(absl::Time now, int64_t now_ns) const {
  std::vector<PushPlan> due;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, group] : groups_) {
    const bool expired =
        options_.expiry > absl::ZeroDuration() && now - group.pushed >= options_.expiry;
    if (!expired && group.leaving.empty()) continue;
    PushPlan& plan = due.emplace_back(PushPlan{.group = name,
                                               .change = PushChange::kEnd,
                                               .time_ns = std::max(now_ns, group.newest_ns + 1),
                                               .turn = group.turn});
    plan.ended.assign(group.leaving.begin(), group.leaving.end());
    if (!expired) continue;
    for (const auto& [key, of] : group.series) plan.ended.push_back(key);
  }
  return due;
}

size_t PushGroups::size() const {
  absl::MutexLock lock(&mutex_);
  return groups_.size();
}

size_t PushGroups::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace tacho::server::interop
