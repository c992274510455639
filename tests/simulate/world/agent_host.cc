// Sources keep their place in the spool, as the real ones do: after a crash each goes on behind the
// last row that the spool still has, and makes those that it lost again.
#include "tests/simulate/world/agent_host.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/sources/rings/ring_source.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"

namespace tacho::simulate {
namespace {

// Of a source that is restless: so many rows have the same host.
constexpr uint64_t kRowsOfHost = 5;

v1::Source SourceOf(int agent, int number, const std::string& host) {
  v1::Source source;
  source.set_job(JobOf(agent, number));
  source.set_task(static_cast<uint32_t>(agent));
  source.set_host(host);
  return source;
}

std::string CheckpointKey(int source) { return absl::StrCat("simulated/", source); }

}  // namespace

// The spool, for the source that reads rings: the model learns what the spool has taken.
class AgentHost::RingSink : public agent::RowSink {
 public:
  explicit RingSink(AgentHost* agent) : agent_(agent), spool_(agent->spool_.get()) {}

  absl::StatusOr<uint32_t> DefineLayout(const v1::Layout& layout) override {
    return spool_->DefineLayout(layout);
  }
  absl::Status AppendRows(uint32_t layout, std::span<const int64_t> times,
                          std::span<const int64_t> steps, std::span<const double> values,
                          const Checkpoint& checkpoint) override {
    absl::MutexLock lock(&agent_->append_mutex_);
    // Afterwards the end may lie behind the Gap for what had to be dropped.
    const uint64_t sequence = spool_->end();
    const absl::Status appended = spool_->AppendRows(layout, times, steps, values, checkpoint);
    if (!appended.ok()) {
      agent_->NoteDrops();
      return appended;
    }
    for (const int64_t step : steps) {
      agent_->model_->Appended({agent_->options_.number, kRingSource}, static_cast<uint64_t>(step),
                               sequence);
    }
    agent_->NoteDrops();
    return absl::OkStatus();
  }
  absl::Status AppendEvent(const v1::Event& event, const Checkpoint& checkpoint) override {
    absl::MutexLock lock(&agent_->append_mutex_);
    const absl::Status appended = spool_->AppendEvent(event, checkpoint);
    agent_->NoteDrops();
    return appended;
  }
  absl::Status AppendAttributes(const v1::Attributes& attributes,
                                const Checkpoint& checkpoint) override {
    absl::MutexLock lock(&agent_->append_mutex_);
    const absl::Status appended = spool_->AppendAttributes(attributes, checkpoint);
    agent_->NoteDrops();
    return appended;
  }
  absl::Status WriteCheckpoint(const Checkpoint& checkpoint) override {
    return spool_->WriteCheckpoint(checkpoint);
  }
  std::string ReadCheckpoint(absl::string_view key) const override {
    return spool_->ReadCheckpoint(key);
  }

 private:
  AgentHost* const agent_;
  agent::Spool* const spool_;
};

AgentHost::AgentHost(AgentOptions options, SimNetwork* network, Model* model, log::Log log)
    : options_(std::move(options)),
      name_(absl::StrCat("agent-", options_.number)),
      host_(AddHost()),
      network_(network),
      model_(model),
      log_(std::move(log)),
      disk_(options_.seed) {
  if (options_.ring_directory.empty()) return;
  trainer_ = std::make_unique<Trainer>(TrainerOptions{.agent = options_.number,
                                                      .host = host_,
                                                      .period = options_.period,
                                                      .directory = options_.ring_directory},
                                       model_);
}

AgentHost::~AgentHost() { TACHO_CHECK(spool_ == nullptr); }

absl::Status AgentHost::Start() {
  const OnHost on(host_);
  ComeBack();
  agent::SpoolOptions spool;
  spool.path = "/spool";
  spool.env = &disk_;
  spool.max_bytes = options_.knobs.spool_bytes;
  spool.log = log_;
  TACHO_ASSIGN_OR_RETURN(spool_, agent::Spool::Open(std::move(spool)));
  CheckSynced();
  // The process before may have ended while it dropped something, and not have counted that.
  NoteDrops(/*new_process=*/true);
  model_->ForgetUnsynced(options_.number, spool_->end());
  if (std::exchange(rings_lost_, false)) model_->ForgetRings(options_.number);
  Observe();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = false;
  }
  agent::StreamOptions stream;
  stream.addresses = options_.collectors;
  stream.agent_id = name_;
  stream.version = "simulated";
  stream.backlog_rows_per_second = options_.knobs.backlog_rows_per_second;
  stream.lanes.short_backlog = options_.knobs.short_backlog;
  stream.sync_interval = options_.knobs.sync_interval;
  stream.random = [] { return static_cast<double>(ScheduleRandom() >> 11) * 0x1p-53; };
  stream.log = SenderLog();
  stream.transport = [this] { return network_->MakeTransport(name_); };
  sender_ = std::make_unique<agent::Sender>(std::move(stream), spool_.get());
  sender_->Start();
  // An event makes the collector write what was registered: without events only rows do.
  for (int source = options_.restless ? 1 : 0; source <= options_.sources; ++source) {
    sources_.emplace_back([this, source] { RunSource(source); });
  }
  sources_.emplace_back([this] { RunSource(kShortSource); });
  if (trainer_ != nullptr) {
    sources_.emplace_back([this] { FollowRings(); });
    if (!quiet_) trainer_->Start();
  }
  return absl::OkStatus();
}

void AgentHost::ComeBack() {
  if (!disk_.power()->dead()) return;
  if (disk_.power()->lost_power() && trainer_ != nullptr) {
    trainer_->LosePower();
    rings_lost_ = true;
  }
  disk_.power()->Start();
}

void AgentHost::RestoreSpool() {
  ReplaceSpool(copy_);
  restored_ = true;
}

void AgentHost::ReplaceSpool(const testing::PowerCutEnv::Files& files) {
  TACHO_CHECK(trainer_ == nullptr);
  if (!disk_.power()->dead()) disk_.power()->Kill();
  Stop(End::kDead);
  disk_.power()->Start();
  disk_.power()->SetFiles(files);
  synced_ = begin_noted_ = 0;
  lost_otherwise_ = true;
  restored_ = says_old_copy_ = false;
  for (int source = 0; source <= kShortSource; ++source) {
    made_before_[source] = model_->Made({options_.number, source});
  }
  model_->SpoolReplaced(options_.number);
}

log::Log AgentHost::SenderLog() {
  if (!restored_) return log_;
  log::LogOptions options;
  options.write = [this](log::Level level, absl::string_view line) {
    if (absl::StrContains(line, "the directory is an old copy")) says_old_copy_ = true;
    log_.Write(level, line);
  };
  return log::Log(std::move(options));
}

void AgentHost::StopSources() {
  quiet_ = true;
  if (trainer_ != nullptr) trainer_->Stop();
}

void AgentHost::Stop(End how) {
  if (spool_ == nullptr) return;
  const OnHost on(host_);
  if (how == End::kDead) network_->Kill(name_);
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& source : sources_) source.join();
  sources_.clear();
  sender_->Stop(how == End::kOrderly ? absl::Seconds(5) : absl::ZeroDuration());
  if (how == End::kOrderly) Observe();
  sender_.reset();
  NoteDrops();
  lost_before_ = lost_samples();
  lost_otherwise_ = lost_otherwise();
  spool_.reset();
}

void AgentHost::Observe() {
  if (spool_ != nullptr && !disk_.power()->dead()) {
    const uint64_t begin = spool_->begin();
    // A source may stand between its append, which has dropped something, and NoteDrops().
    if (MayHaveDropped()) model_->Dropped(options_.number, begin_noted_, begin);
    model_->Trimmed(options_.number, begin);
    synced_ = std::max(synced_, spool_->synced_end());
  }
}

void AgentHost::CheckSynced() {
  // A new generation has sequences of its own.
  if (spool_->generation() != generation_) synced_ = 0;
  generation_ = spool_->generation();
  if (spool_->end() >= synced_ || !wrong_.empty()) return;
  wrong_ = absl::StrCat(name_, "'s spool lost synced entries: it ends at ", spool_->end(),
                        ", and was synced up to ", synced_);
}

uint64_t AgentHost::lost_samples() const {
  if (spool_ == nullptr) return lost_before_;
  const agent::SpoolStats stats = spool_->Stats();
  // A message is one row or one event; those of rings have several rows.
  const uint64_t rows = trainer_ == nullptr ? stats.dropped_rows() : 0;
  return lost_before_ + stats.dropped_rows() * kColumns + stats.dropped_entries() - rows;
}

bool AgentHost::IsActive(int source) const {
  constexpr int64_t kRound = 240'000'000'000;
  constexpr int64_t kWork = 60'000'000'000;
  return !quiet_ && (source < kShortSource || LaboratoryNs() % kRound < kWork);
}

uint64_t AgentHost::waiting() const {
  return spool_ == nullptr ? 0 : spool_->end() - spool_->begin();
}

bool AgentHost::SleepUntilNext(absl::Duration period) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration jitter = absl::Milliseconds(static_cast<int64_t>(ScheduleRandom() % 100));
  const absl::Duration trickle = trickle_;
  const auto woken = [this, trickle]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || trickle_ != trickle;
  };
  AwaitFor(&mutex_, absl::Condition(&woken), std::max(period, trickle) + jitter);
  return !stopping_;
}

void AgentHost::SetTrickle(absl::Duration period) {
  absl::MutexLock lock(&mutex_);
  trickle_ = period;
}

bool AgentHost::lost_otherwise() const {
  if (spool_ == nullptr) return lost_otherwise_;
  const agent::SpoolStats stats = spool_->Stats();
  const agent::SpoolStats::Lost& full = stats.Of(agent::SpoolLoss::kBytes);
  return lost_otherwise_ || stats.dropped_entries() > full.messages ||
         stats.dropped_rows() > full.rows;
}

bool AgentHost::MayHaveDropped() const {
  return lost_samples() > lost_noted_ || disk_.refusals() > 0;
}

void AgentHost::NoteDrops(bool new_process) {
  const uint64_t begin = spool_->begin();
  if (new_process || MayHaveDropped()) model_->Dropped(options_.number, begin_noted_, begin);
  lost_noted_ = lost_samples();
  begin_noted_ = begin;
}

absl::StatusOr<uint32_t> AgentHost::DefineLayout(int source, uint64_t number) {
  v1::Layout layout;
  const bool moves = options_.restless && source == kShortSource;
  const std::string host = moves ? absl::StrCat(name_, "-", number / kRowsOfHost) : name_;
  *layout.mutable_source() = SourceOf(options_.number, source, host);
  layout.set_has_steps(true);
  for (int column = 0; column < kColumns; ++column) {
    v1::Metric* const metric = layout.add_series()->mutable_metric();
    metric->set_name(MetricOf(source, column));
    metric->set_type(v1::METRIC_TYPE_GAUGE);
  }
  return spool_->DefineLayout(layout);
}

void AgentHost::RunSource(int source) {
  uint64_t number = 0;
  const std::string kept = spool_->ReadCheckpoint(CheckpointKey(source));
  TACHO_CHECK(kept.empty() || absl::SimpleAtoi(kept, &number));
  // A source goes on with time, whatever has become of the spool.
  if (const auto made = made_before_.find(source); made != made_before_.end()) {
    number = std::max(number, made->second);
  }
  while (SleepUntilNext(options_.period)) {
    if (!IsActive(source)) continue;
    const auto layout = DefineLayout(source, number + 1);
    if (layout.ok() && Append(source, *layout, number + 1)) ++number;
  }
}

bool AgentHost::Append(int source, uint32_t layout, uint64_t number) {
  // Before the lock: the clock may be set while we wait for it.
  const bool right = IsClockRight(host_);
  const int64_t now = absl::ToUnixNanos(absl::Now());
  absl::MutexLock lock(&append_mutex_);
  const Model::Row& row = model_->Make({options_.number, source}, number, now, right);
  const agent::RowSink::Checkpoint place = {CheckpointKey(source), absl::StrCat(number)};
  // Afterwards the end may lie behind the Gap for what had to be dropped.
  const uint64_t sequence = spool_->end();
  absl::Status appended;
  if (source == 0) {
    v1::Event event;
    *event.mutable_source() = SourceOf(options_.number, source, name_);
    event.set_time_unix_ns(row.time_ns);
    event.set_step(static_cast<int64_t>(number));
    event.set_kind("simulated");
    appended = spool_->AppendEvent(event, place);
  } else {
    double values[kColumns];
    for (int column = 0; column < kColumns; ++column) {
      values[column] = ValueOf(static_cast<uint64_t>(options_.number),
                               static_cast<uint64_t>(source), number, column);
    }
    const int64_t step = static_cast<int64_t>(number);
    appended = spool_->AppendRows(layout, {&row.time_ns, 1}, {&step, 1}, values, place);
  }
  if (appended.ok()) model_->Appended({options_.number, source}, number, sequence);
  NoteDrops();
  return appended.ok();
}

void AgentHost::FollowRings() {
  // The source lists a directory at most once a second, unless it looks changed: the real time of
  // that change must not matter.
  constexpr absl::Duration kPeriod = absl::Seconds(1);
  config::v1::Agent::Rings rings;
  rings.set_directory(trainer_->directory());
  rings.set_poll_interval(absl::ToInt64Nanoseconds(kPeriod));
  agent::RingSource source(rings, {.host = name_, .log = log_});
  RingSink sink(this);
  while (SleepUntilNext(kPeriod)) source.Poll(absl::Now(), &sink);
}

}  // namespace tacho::simulate
