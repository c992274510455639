// One thread that polls for commits and judges the jobs that are due. It polls rather than being
// woken, so that a burst of commits becomes one judgement of each job, not many.
#include "server/conditions/condition_engine.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "proto/base/background_thread.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/timed_wait.h"
#include "server/conditions/condition_events.h"
#include "server/conditions/window/running_tasks.h"
#include "server/conditions/window/window_loader.h"

namespace tacho::server::conditions {
namespace {

// How often the thread looks for commits, and for jobs that are due.
constexpr absl::Duration kTick = absl::Milliseconds(200);
constexpr absl::Duration kRefreshFactsEvery = absl::Seconds(30);
// The thread reads missed changes from the store at most this often.
constexpr absl::Duration kLoadAtMostEvery = absl::Seconds(30);
// Rows have their senders' times; a re-read goes back this much further than the last commit taken.
constexpr absl::Duration kSlack = absl::Minutes(2);
// Jobs that went away within this time may have left conditions open.
constexpr absl::Duration kLookBack = absl::Hours(24 * 7);
constexpr size_t kMaxHostsRemembered = 10'000;

}  // namespace

ConditionEngine::ConditionEngine(ConditionEngineOptions options)
    : options_(std::move(options)),
      metrics_(options_.registry),
      next_settings_(options_.settings),
      baselines_(options_.store) {}

void ConditionEngine::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ConditionEngine::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  subscription_.reset();
}

absl::StatusOr<std::function<void()>> ConditionEngine::Prepare(
    const config::v1::Collector& config) {
  auto settings = ConditionSettings::Create(config.conditions());
  if (!settings.ok()) return settings.status();
  return [this, settings = *std::move(settings)] { Use(settings); };
}

void ConditionEngine::Use(std::shared_ptr<const ConditionSettings> settings) {
  absl::MutexLock lock(&mutex_);
  next_settings_ = std::move(settings);
}

void ConditionEngine::Run() {
  BecomeBackgroundThread("conditions");
  for (;;) {
    RunOnce();
    absl::MutexLock lock(&mutex_);
    if (AwaitFor(&mutex_, absl::Condition(&stopping_), kTick)) return;
  }
}

void ConditionEngine::RunOnce() {
  TakeSettings();
  if (settings_->enabled()) {
    const absl::Time now = options_.now();
    const absl::Time gone = now - settings_->forget_after();
    windows_->SetOldest(absl::ToUnixNanos(gone));
    TakeChanges();
    for (const std::string& name : windows_->Jobs()) {
      JudgedJob* const job = FindOrAddJob(name, now);
      if (!HasCome(job->due, now, settings_->interval())) continue;
      // One judgement covers everything that happened before the job was due.
      job->due = now + settings_->interval();
      if (windows_->LastSeenNs(name) < absl::ToUnixNanos(gone)) {
        LetGo(name, job, now, "JobGone", "the job ended, or sent nothing, long ago");
        continue;
      }
      Judge(name, job, now);
    }
    ForgetHosts(now);
  }
  StoreAgainWhatWasRefused();
  ShowFigures();
}

// This looks at every track of every host, so it runs only when some may have become too old.
void ConditionEngine::ForgetHosts(absl::Time now) {
  const absl::Duration after = settings_->forget_after();
  const absl::Duration pause = std::min(after / 64, absl::Minutes(1));
  if (!HasCome(forget_due_, now, pause)) return;
  windows_->ForgetHostsBefore(absl::ToUnixNanos(now - after));
  forget_due_ = now + pause;
}

void ConditionEngine::TakeSettings() {
  std::shared_ptr<const ConditionSettings> next;
  {
    absl::MutexLock lock(&mutex_);
    next = std::exchange(next_settings_, nullptr);
  }
  if (next == nullptr) return;
  const auto before = std::exchange(settings_, std::move(next));
  if (!settings_->enabled()) {
    const absl::Time now = options_.now();
    while (!jobs_.empty()) {
      const std::string name = jobs_.begin()->first;
      LetGo(name, &jobs_.begin()->second, now, "NotJudged", "conditions were switched off");
    }
    subscription_.reset();
    windows_.reset();
    return;
  }
  if (windows_ != nullptr && !settings_->ReadsOtherMetrics(*before)) {
    return windows_->SetLimits(settings_->window_limits());
  }
  windows_ = std::make_unique<WindowBuilder>(settings_->signal_names(), settings_->window_limits());
  windows_empty_ = true;
  subscription_.reset();
}

void ConditionEngine::TakeChanges() {
  const absl::Time now = options_.now();
  std::vector<storage::Change> changes;
  if (subscription_ != nullptr && !subscription_->Take(&changes).ok()) {
    metrics_.FellBehind();
    subscription_.reset();
  }
  if (subscription_ == nullptr) {
    if (now < load_again_) return;
    load_again_ = now + kLoadAtMostEvery;
    storage::SubscribeOptions options;
    options.every_job = true;
    options.buffer_bytes = options_.buffer_bytes;
    subscription_ = options_.store->Subscribe(std::move(options), nullptr);
    LoadAll(windows_empty_ ? absl::InfinitePast() : taken_until_ - kSlack);
    windows_empty_ = false;
    started_ = true;
  }
  AddRowsByLayout(changes);
  // Events follow the rows, which may be the first of their job.
  for (const storage::Change& change : changes) {
    if (change.event != nullptr) windows_->AddEvent(*change.event);
  }
  taken_until_ = now;
}

void ConditionEngine::AddRowsByLayout(const std::vector<storage::Change>& changes) {
  struct Group {
    const storage::Layout* layout = nullptr;
    std::vector<storage::RowsEntry> entries;
  };
  std::vector<Group> groups;  // In the order of their first rows.
  absl::flat_hash_map<const storage::Layout*, size_t> places;
  for (const storage::Change& change : changes) {
    if (change.event != nullptr) continue;
    const auto [place, added] = places.try_emplace(change.layout.get(), groups.size());
    if (added) groups.push_back({change.layout.get(), {}});
    groups[place->second].entries.push_back(change.rows);
  }
  for (const Group& group : groups) windows_->AddRows(*group.layout, group.entries);
}

void ConditionEngine::LoadAll(absl::Time since) {
  const absl::Time now = options_.now();
  auto jobs = options_.store->Jobs();
  const int64_t gone_ns = absl::ToUnixNanos(now - settings_->forget_after());
  for (const storage::JobSummary& job : jobs) {
    if (job.extent.last_time_ns < gone_ns) continue;
    LoadSpan span = SpanAfterStart(absl::ToUnixNanos(now), job.tasks);
    if (since > absl::InfinitePast()) {
      span.since_ns = span.leader_since_ns = absl::ToUnixNanos(since);
    }
    const absl::Status loaded = LoadWindow(*options_.store, job.name, span, windows_.get());
    if (!loaded.ok()) {
      options_.log.Limited(log::Level::kWarn, "conditions: history of a job cannot be read",
                           {{"job", job.name}, {"reason", loaded.message()}});
    }
  }
  if (started_) return;
  for (const std::string& name : windows_->Jobs()) {
    FindOrAddJob(name, now)->frozen_until = now + settings_->settle();
  }
  CloseAbandoned(jobs, now);
}

void ConditionEngine::CloseAbandoned(const std::vector<storage::JobSummary>& jobs, absl::Time now) {
  const int64_t since_ns = absl::ToUnixNanos(now - kLookBack);
  for (const storage::JobSummary& summary : jobs) {
    if (summary.extent.last_time_ns < since_ns || windows_->Knows(summary.name)) continue;
    JudgedJob job;
    Restore(summary.name, &job);
    if (job.states.empty()) continue;
    JudgedJob* const added = &jobs_.emplace(summary.name, std::move(job)).first->second;
    LetGo(summary.name, added, now, "JobGone", "the job has sent nothing for a long time");
  }
}

ConditionEngine::JudgedJob* ConditionEngine::FindOrAddJob(const std::string& name, absl::Time now) {
  const auto [found, is_new] = jobs_.try_emplace(name);
  if (!is_new) return &found->second;
  Restore(name, &found->second);
  // Spreads the jobs over the interval.
  const auto share = static_cast<double>(std::hash<std::string>()(name) % 1024) / 1024;
  found->second.due = started_ ? now : now + settings_->interval() * share;
  return &found->second;
}

void ConditionEngine::Restore(const std::string& name, JudgedJob* job) {
  auto open = ReadOpenConditions(*options_.store, name);
  if (!open.ok()) {
    options_.log.Limited(log::Level::kWarn, "conditions: events of a job cannot be read",
                         {{"job", name}, {"reason", open.status().message()}});
    return;
  }
  // The job may have been let go a moment ago.
  for (const storage::Event& event : UnsettledOf(name)) ApplyEvent(event, &*open);
  for (const auto& [condition, was] : *open) {
    job->attempt = was.attempt;
    job->states[condition].Restore(was.finding, was.since_ns, was.changed_ns);
  }
}

void ConditionEngine::RefreshFacts(const std::string& name, JudgedJob* job, absl::Time now) {
  const uint32_t attempt = windows_->AttemptOf(name);
  const bool is_new = !job->facts_known || job->attempt != attempt;
  if (!is_new && !HasCome(job->facts_due, now, kRefreshFactsEvery)) return;
  job->facts_due = now + kRefreshFactsEvery;
  job->facts_known = true;
  job->attempt = attempt;
  if (is_new) job->attributes.clear();
  const auto attempts = options_.store->Attempts(name);
  if (!attempts.ok()) return;
  const std::string before = job->attributes["config_fingerprint"];
  for (const storage::AttemptInfo& info : *attempts) {
    if (info.attempt != attempt) continue;
    job->attributes = info.attributes;
    job->attempt_first_ns = info.extent.first_time_ns;
  }
  const std::string fingerprint = job->attributes["config_fingerprint"];
  if (fingerprint.empty()) job->attributes.erase("config_fingerprint");
  if (!is_new && fingerprint == before) return;
  baselines_.Note(name, attempt, fingerprint);
  job->baselines = baselines_.Of(name, attempt, fingerprint, settings_->signal_names());
}

void ConditionEngine::CompleteWindow(const JudgedJob& job, JobWindow* window) const {
  window->attributes = job.attributes;
  window->baselines = job.baselines;
  if (job.attempt_first_ns != 0 && job.attempt_first_ns != INT64_MAX) {
    window->attempt_started_ns = window->attempt_started_ns == 0
                                     ? job.attempt_first_ns
                                     : std::min(window->attempt_started_ns, job.attempt_first_ns);
  }
  window->straggles_elsewhere.clear();
  for (const HostWindow& host : window->hosts) {
    const auto found = straggled_.find(host.host);
    if (found == straggled_.end()) continue;
    const size_t others = found->second.size() - found->second.count(window->job);
    if (others > 0) window->straggles_elsewhere[host.host] = static_cast<uint32_t>(others);
  }
}

const Detectors& ConditionEngine::ChooseProfile(const JobWindow& window, JudgedJob* job) const {
  const JobRules& rules = settings_->Of(window.job);
  if (rules.fixed.has_value()) {
    job->profile = {.profile = *rules.fixed, .reason = "the configuration sets it"};
    return rules.With(*rules.fixed);
  }
  const bool holding = std::any_of(job->states.begin(), job->states.end(), [](const auto& one) {
    return one.second.status() == ConditionStatus::kTrue;
  });
  job->record.Update(window, rules.fast, holding);
  job->profile = job->record.profile();
  return rules.With(job->profile.profile);
}

Finding ConditionEngine::RunDetector(const Detector& detector, const JudgedJob& job,
                                     const JobWindow& window) const {
  Finding none = NotJudged();
  if (!detector.enabled) {
    none.reason = "NotJudged";
    none.message = "the condition was switched off";
    return none;
  }
  // The last rows of a job are judged once; then its conditions end.
  if (window.ended && job.ended && detector.judges != Judges::kEnds) {
    none.reason = "JobEnded";
    none.message = "the job has ended";
    return none;
  }
  Finding finding = detector.detect(window);
  if (detector.severity) finding.severity = *detector.severity;
  TACHO_CHECK(finding.culprits.size() <= kMaxCulprits);
  return finding;
}

void ConditionEngine::TakeProfiles(const JobWindow& window, JudgedJob* job, absl::Time now) const {
  const auto order = job->profiles.Next(window, settings_->Of(window.job).profiler, now);
  if (!order.has_value() || !options_.on_profile) return;
  if (options_.on_profile(*order)) job->profiles.Taken(now);
}

void ConditionEngine::Judge(const std::string& name, JudgedJob* job, absl::Time now) {
  const absl::Time began = MonotonicNow();
  RefreshFacts(name, job, now);
  const int64_t now_ns = absl::ToUnixNanos(now);
  const bool frozen = now < job->frozen_until;
  std::set<std::string> changed;
  windows_->Visit(name, now_ns, options_.agents, [&](JobWindow& window) {
    CompleteWindow(*job, &window);
    const auto judge = [&](const Detector& detector) {
      ConditionState& state = job->states[detector.name];
      const auto change = state.Update(RunDetector(detector, *job, window), now_ns,
                                       {detector.hold_for, detector.clear_after}, frozen);
      if (change != ConditionState::Change::kNone) changed.insert(detector.name);
      if (change == ConditionState::Change::kRaised || change == ConditionState::Change::kCleared) {
        Store(ToEvent({name, window.attempt, detector.name, state.status(), state.finding(),
                       state.since_ns(), state.changed_ns(), now_ns}));
      }
      if (change != ConditionState::Change::kRaised) return;
      job->profiles.Raised(detector.name, state.finding(), settings_->Of(name).profiler, now);
      if (detector.name == "Stalled" && settings_->stacks_on_stall() && options_.on_stalled) {
        options_.on_stalled(name);
      }
    };
    const Detectors& detectors = ChooseProfile(window, job);
    for (const Detector& detector : detectors) {
      if (detector.judges != Judges::kRunning) judge(detector);
    }
    // Once, because it costs a little for each task.
    const RunningTasks running(&window);
    for (const Detector& detector : detectors) {
      if (detector.judges == Judges::kRunning) judge(detector);
    }
    TakeProfiles(window, job, now);
    job->ended = window.ended;
  });
  Publish(name, *job, job->attempt, now_ns, changed);
  metrics_.Judged(MonotonicNow() - began);
}

void ConditionEngine::Publish(const std::string& name, const JudgedJob& job, uint32_t attempt,
                              int64_t now_ns, const std::set<std::string>& changed) {
  JobConditions all;
  JobConditions changes;
  all.reserve(job.states.size());
  for (const auto& [condition, state] : job.states) {
    all.push_back(std::make_shared<const JudgedCondition>(
        JudgedCondition{name, attempt, condition, state.status(), state.finding(), state.since_ns(),
                        state.changed_ns(), now_ns}));
    if (state.status() == ConditionStatus::kTrue) NoteStragglers(*all.back());
    if (changed.contains(condition)) changes.push_back(all.back());
  }
  board_.Put(name, std::move(all), std::move(changes), job.profile);
}

void ConditionEngine::NoteStragglers(const JudgedCondition& condition) {
  if (condition.name != "Straggling") return;
  for (const Culprit& culprit : condition.finding.culprits) {
    if (culprit.host.empty()) continue;
    if (straggled_.size() >= kMaxHostsRemembered && !straggled_.contains(culprit.host)) continue;
    straggled_[culprit.host].insert(condition.job);
  }
}

void ConditionEngine::LetGo(const std::string& name, JudgedJob* job, absl::Time now,
                            const std::string& reason, const std::string& message) {
  const int64_t now_ns = absl::ToUnixNanos(now);
  JobConditions changes;
  for (auto& [condition, state] : job->states) {
    const auto change = state.End(now_ns, reason, message);
    const JudgedCondition judged = {name,
                                    job->attempt,
                                    condition,
                                    state.status(),
                                    state.finding(),
                                    state.since_ns(),
                                    state.changed_ns(),
                                    now_ns};
    if (change == ConditionState::Change::kCleared) Store(ToEvent(judged));
    changes.push_back(std::make_shared<const JudgedCondition>(judged));
  }
  board_.Put(name, {}, std::move(changes));
  if (windows_ != nullptr) windows_->Forget(name);
  jobs_.erase(name);
}

void ConditionEngine::Store(storage::Event event) {
  to_store_.push_back(++events_);
  absl::MutexLock lock(&appended_->mutex);
  appended_->unsettled.emplace(events_, std::move(event));
}

std::vector<storage::Event> ConditionEngine::UnsettledOf(const std::string& job) const {
  std::vector<storage::Event> events;
  absl::MutexLock lock(&appended_->mutex);
  for (const auto& [number, event] : appended_->unsettled) {
    if (event.source.job == job) events.push_back(event);
  }
  return events;
}

void ConditionEngine::StoreAgainWhatWasRefused() {
  std::vector<std::pair<uint64_t, storage::Event>> events;
  {
    absl::MutexLock lock(&appended_->mutex);
    // Refused events go before newer ones.
    to_store_.insert(to_store_.begin(), appended_->refused.begin(), appended_->refused.end());
    metrics_.EventsSettled(std::exchange(appended_->stored, 0), appended_->refused.size());
    appended_->refused.clear();
    for (const uint64_t number : to_store_) {
      events.emplace_back(number, appended_->unsettled.at(number));
    }
    to_store_.clear();
  }
  for (const auto& one : events) {
    options_.store->AppendEvent({}, one.second,
                                [results = appended_, number = one.first](const absl::Status& s) {
                                  absl::MutexLock lock(&results->mutex);
                                  if (s.ok()) {
                                    ++results->stored;
                                    results->unsettled.erase(number);
                                  } else {
                                    results->refused.push_back(number);
                                  }
                                });
  }
}

void ConditionEngine::ShowFigures() {
  metrics_.Show(windows_ == nullptr ? WindowBuilder::Stats() : windows_->stats());
}

}  // namespace tacho::server::conditions
