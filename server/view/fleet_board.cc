// A look compares each job's summary with the one that its row was made from, so that a job with
// nothing new costs a look-up. The index and the disk are asked only where their answer may have
// changed: JobSummary::told counts the events and attributes that no other field shows.
#include "server/view/fleet_board.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "server/query/lists/job_detail.h"
#include "server/query/lists/job_listing.h"
#include "server/query/read/job_state.h"

namespace tacho::server::view {
namespace {

// Retention may remove the event that a state rests on, which nothing tells.
constexpr absl::Duration kFactsFor = absl::Minutes(1);
// Jobs that have been quiet for longer are not asked about again for that reason.
constexpr absl::Duration kQuietAfter = absl::Hours(1);

bool HasRows(const storage::JobSummary& job) {
  return job.extent.first_time_ns <= job.extent.last_time_ns;
}

bool WasSeenWithin(const storage::JobSummary& job, absl::Duration age, absl::Time now) {
  return HasRows(job) && job.extent.last_time_ns >= absl::ToUnixNanos(now - age);
}

}  // namespace

FleetBoard::FleetBoard(FleetBoardOptions options) : options_(std::move(options)) {
  if (options_.conditions == nullptr) return;
  absl::MutexLock lock(&mutex_);
  options_.conditions->All([](const std::string&) { return false; }, &conditions_position_);
}

absl::StatusOr<FleetPtr> FleetBoard::Look(const query::QueryControl& control) {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = options_.now();
  if (fleet_ != nullptr && !HasCome(looked_ + options_.look_every, now, options_.look_every)) {
    return fleet_;
  }
  TACHO_RETURN_IF_ERROR(LookAgain(now, control));
  looked_ = now;
  return fleet_;
}

absl::Status FleetBoard::LookAgain(absl::Time now, const query::QueryControl& control) {
  TakeChangedConditions();
  TakeGoodput();
  TACHO_RETURN_IF_ERROR(chips_.Renew(*options_.store, now));
  const std::vector<storage::JobSummary> jobs = NewestJobs(now);
  changed_ = ForgetAllBut(jobs) || changed_ || idle_version_ != chips_.version();
  for (const storage::JobSummary& job : jobs) {
    TACHO_RETURN_IF_ERROR(control.Check());
    TACHO_ASSIGN_OR_RETURN(const auto changed, Renew(job, now));
    changed_ = changed_ || changed;
  }
  if (changed_) Publish();
  return absl::OkStatus();
}

std::vector<storage::JobSummary> FleetBoard::NewestJobs(absl::Time now) const {
  std::vector<storage::JobSummary> jobs = options_.store->Jobs();
  std::erase_if(jobs, [this](const auto& job) {
    return job.name.empty() || (options_.shows != nullptr && !options_.shows(job.name));
  });
  query::KeepOwnParts(*options_.store, options_.own_part, &jobs);
  if (options_.job_refusals != nullptr) {
    absl::flat_hash_set<std::string> known;
    for (const storage::JobSummary& job : jobs) known.insert(job.name);
    for (auto& refused : options_.job_refusals->RecentJobs(now)) {
      if (!known.contains(refused.name)) jobs.emplace_back().name = std::move(refused.name);
    }
  }
  if (jobs.size() <= options_.max_jobs) return jobs;
  const auto newer = [](const auto& a, const auto& b) {
    return std::tie(b.extent.last_time_ns, a.name) < std::tie(a.extent.last_time_ns, b.name);
  };
  const auto end = jobs.begin() + static_cast<std::ptrdiff_t>(options_.max_jobs);
  std::nth_element(jobs.begin(), end, jobs.end(), newer);
  jobs.resize(options_.max_jobs);
  return jobs;
}

void FleetBoard::TakeChangedConditions() {
  if (options_.conditions == nullptr) return;
  conditions::JobConditions changes;
  if (options_.conditions->ChangesSince(&conditions_position_, &changes).ok()) {
    for (const conditions::JudgedConditionPtr& change : changes) {
      const auto found = entries_.find(change->job);
      if (found != entries_.end()) found->second.judged_anew = true;
    }
    return;
  }
  options_.conditions->All([](const std::string&) { return false; }, &conditions_position_);
  for (auto& [job, entry] : entries_) entry.judged_anew = true;
}

void FleetBoard::TakeGoodput() {
  if (options_.goodput == nullptr) return;
  goodput_.clear();
  for (auto& one : options_.goodput->Newest()) {
    const std::string& job = one->job;
    goodput_.emplace(job, std::move(one));
  }
}

std::shared_ptr<const goodput::BoardGoodput> FleetBoard::GoodputOf(const std::string& job) const {
  const auto found = goodput_.find(job);
  return found == goodput_.end() ? nullptr : found->second;
}

bool FleetBoard::ForgetAllBut(const std::vector<storage::JobSummary>& jobs) {
  absl::flat_hash_set<absl::string_view> names;
  for (const storage::JobSummary& job : jobs) names.insert(job.name);
  return absl::erase_if(entries_, [&](const auto& entry) { return !names.contains(entry.first); }) >
         0;
}

bool FleetBoard::FactsAreOld(const Entry& entry, const storage::JobSummary& job,
                             absl::Time now) const {
  if (entry.row == nullptr) return true;
  const storage::JobSummary& old = entry.summary;
  if (std::tie(job.told, job.series, job.attempts, job.tasks, job.hosts) !=
      std::tie(old.told, old.series, old.attempts, old.tasks, old.hosts)) {
    return true;
  }
  if (job.extent.first_time_ns != old.extent.first_time_ns) return true;  // Another of that name.
  const bool active = WasSeenWithin(job, query::kActiveFor, now);
  if (entry.row->job.state() == v1::JOB_STATE_RUNNING) {
    if (!active) return true;  // It has fallen silent, by time alone.
  } else if (job.extent.last_time_ns != old.extent.last_time_ns) {
    return true;
  }
  if (entry.chips_version != chips_.version() && active) return true;
  return WasSeenWithin(job, kQuietAfter, now) &&
         HasCome(entry.facts_at + kFactsFor, now, kFactsFor);
}

bool FleetBoard::HasMoved(const Entry& entry, const storage::JobSummary& job,
                          absl::Time now) const {
  if (!HasCome(entry.moved_at + options_.move_every, now, options_.move_every)) return false;
  const storage::Extent& old = entry.summary.extent;
  const uint64_t refused =
      options_.job_refusals == nullptr ? 0 : options_.job_refusals->SamplesOf(job.name);
  return job.extent.last_time_ns != old.last_time_ns || job.extent.last_step != old.last_step ||
         entry.row->job.refused_samples() != refused || entry.row->goodput != GoodputOf(job.name) ||
         RankIsOld(*entry.row, absl::ToUnixNanos(now));
}

absl::StatusOr<bool> FleetBoard::Renew(const storage::JobSummary& job, absl::Time now) {
  Entry& entry = entries_[job.name];
  const bool facts_are_old = FactsAreOld(entry, job, now);
  if (!facts_are_old && !entry.judged_anew && !HasMoved(entry, job, now)) return false;
  auto row =
      entry.row == nullptr ? std::make_shared<FleetRow>() : std::make_shared<FleetRow>(*entry.row);
  row->goodput = GoodputOf(job.name);
  query::ToProto(job, &row->job);
  if (options_.job_refusals != nullptr) {
    row->job.set_refused_samples(options_.job_refusals->SamplesOf(job.name));
  }
  if (options_.conditions != nullptr) {
    row->conditions = TrueOnes(options_.conditions->Of(job.name));
  }
  if (facts_are_old) {
    const absl::Status taken = TakeFacts(job, now, &entry, row.get());
    if (absl::IsNotFound(taken)) return entries_.erase(job.name) > 0;
    if (!taken.ok()) return taken;
    entry.facts_at = now;
  }
  const int64_t now_ns = absl::ToUnixNanos(now);
  const bool same =
      entry.row != nullptr && ShowsTheSame(*entry.row, *row) && !RankIsOld(*entry.row, now_ns);
  entry.summary = job;
  entry.moved_at = now;
  entry.judged_anew = false;
  if (same) return false;
  row->rank = RankOf(*row, now_ns);
  row->revision = revision_ + 1;
  entry.row = std::move(row);
  return true;
}

absl::Status FleetBoard::TakeFacts(const storage::JobSummary& job, absl::Time now, Entry* entry,
                                   FleetRow* row) {
  auto outline = options_.store->Outline(job.name, /*hosts=*/true);
  if (absl::IsNotFound(outline.status()) && options_.job_refusals != nullptr &&
      options_.job_refusals->IsRecent(job.name, now)) {
    row->job.set_state(v1::JOB_STATE_SILENT);  // Nothing but its name is known.
    row->outline = std::make_shared<const storage::JobOutline>();
    return absl::OkStatus();
  }
  if (!outline.ok()) return outline.status();
  TACHO_ASSIGN_OR_RETURN(const auto state, query::StateOfJob(*options_.store, job, now));
  row->job.clear_marks();
  query::ToProto(job, *outline, state, &row->job);
  row->attempt = outline->attempt.value_or(0);
  TACHO_RETURN_IF_ERROR(TakeChips(*outline, job, entry, row));
  row->outline = BytesOf(*outline) > kMaxKeptOutline
                     ? nullptr
                     : std::make_shared<const storage::JobOutline>(*std::move(outline));
  return absl::OkStatus();
}

absl::Status FleetBoard::TakeChips(const storage::JobOutline& outline,
                                   const storage::JobSummary& job, Entry* entry, FleetRow* row) {
  entry->chips_version = chips_.version();
  if (job.name == kHostsJob) return absl::OkStatus();  // It holds none.
  const bool running = row->job.state() == v1::JOB_STATE_RUNNING;
  const bool knows_hosts = row->goodput != nullptr && row->goodput->attempt == row->attempt;
  const std::vector<std::string>& hosts = knows_hosts ? row->goodput->hosts : outline.hosts;
  entry->hosts = running ? hosts : std::vector<std::string>();
  row->chips = DeviceCountOf(outline);
  if (row->chips > 0) return absl::OkStatus();
  if (running && entry->counted_series != job.series) {
    TACHO_ASSIGN_OR_RETURN(const auto entities, options_.store->Entities(job.name));
    absl::flat_hash_set<std::pair<absl::string_view, absl::string_view>> own;
    for (const auto& chip : entities.chips) own.emplace(chip.host, chip.chip);
    entry->own_chips = static_cast<uint32_t>(own.size());
    entry->counted_series = job.series;
  }
  row->chips = entry->own_chips > 0 ? entry->own_chips : chips_.On(hosts);
  return absl::OkStatus();
}

void FleetBoard::Publish() {
  auto fleet = std::make_shared<Fleet>();
  fleet->revision = ++revision_;
  absl::flat_hash_set<absl::string_view> used;
  for (const auto& [name, entry] : entries_) {
    fleet->rows.push_back(entry.row);
    used.insert(entry.hosts.begin(), entry.hosts.end());
  }
  std::sort(fleet->rows.begin(), fleet->rows.end(),
            [](const auto& a, const auto& b) { return ComesBefore(*a, *b); });
  fleet->hosts = chips_.Hosts(used);
  if (chips_.version() > 0) fleet->chips_idle = IdleChips(fleet->hosts);
  idle_version_ = chips_.version();
  changed_ = false;
  fleet_ = std::move(fleet);
}

}  // namespace tacho::server::view
