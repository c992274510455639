// The parts of a collector that a sample passes, built and ended in the order in which
// server/collector.cc builds and ends them. Left out: sockets, HTTP, conditions, goodput.
#include "tests/simulate/world/collector_host.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "prometheus/registry.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/config/yaml_config.h"
#include "server/edge/quotas.h"
#include "server/ingest/agent_clocks.h"
#include "server/ingest/agent_ledger.h"
#include "server/ingest/ingest_service.h"
#include "server/limits/series_limiting.h"
#include "server/process/clock_watch.h"
#include "storage/store.h"
#include "tests/simulate/world/range_check.h"

namespace tacho::simulate {
namespace {

constexpr char kConfig[] = R"(
storage:
  path: /store
  retention: 30d
)";

config::v1::Collector MakeConfig() {
  config::v1::Collector config;
  const absl::Status parsed = config::ParseYaml(kConfig, "simulated.yaml", &config);
  TACHO_CHECK(parsed.ok());
  return config;
}

// A day is dropped when all of it is too old, and then only so many days an hour, in the first hour
// of a process none; the disk may refuse for a day or two.
constexpr absl::Duration kDroppedWithin = absl::Hours(24 * 5);
// How far the collector's clock may be ahead and still be right.
constexpr absl::Duration kClockError = absl::Minutes(5);

}  // namespace

struct CollectorHost::Process {
  explicit Process(const log::Log& log)
      : clocks(absl::Now, MonotonicNow),
        watch({.votes = [this] { return clocks.Votes(); }, .registry = &registry, .log = log}) {}

  config::v1::Collector config = MakeConfig();
  prometheus::Registry registry;
  server::ingest::AgentClocks clocks;
  server::process::ClockWatch watch;
  std::unique_ptr<storage::Store> store;
  std::unique_ptr<server::limits::SeriesLimiting> limiting;
  std::unique_ptr<server::edge::Quotas> quotas;
  server::ingest::AgentLedger ledger;
  std::unique_ptr<server::ingest::IngestService> ingest;
  std::unique_ptr<storage::Subscription> published;
  std::atomic<storage::DiskState> disk_state = storage::DiskState::kWritable;
};

CollectorHost::CollectorHost(std::string address, const Knobs& knobs, uint64_t seed,
                             SimNetwork* network, Model* model, log::Log log)
    : address_(std::move(address)),
      knobs_(knobs),
      host_(AddHost()),
      network_(network),
      model_(model),
      log_(std::move(log)),
      disk_(seed) {}

CollectorHost::~CollectorHost() = default;

absl::Status CollectorHost::Start() {
  const OnHost on(host_);
  if (disk_.power()->lost_power() && disk_.TakeLies()) {
    lied_ = true;
    model_->ForgetStored();
  }
  if (disk_.power()->dead()) disk_.power()->Start();
  wants_to_end_ = false;
  errors_before_ = disk_.errors();
  auto process = std::make_unique<Process>(log_);
  if (knobs_.series_per_job != 0) {
    process->config.mutable_limits()->set_series_per_job(knobs_.series_per_job);
  }
  if (knobs_.retention != absl::ZeroDuration()) {
    process->config.mutable_storage()->set_retention(absl::ToInt64Nanoseconds(knobs_.retention));
  }
  const auto& storage = process->config.storage();
  storage::StoreOptions options;
  options.path = storage.path();
  options.env = &disk_;
  options.retention = absl::Nanoseconds(storage.retention());
  options.retention_days_per_hour = storage.retention_days_per_hour();
  options.seal_age = knobs_.seal_age;
  options.seal_rows = knobs_.seal_rows;
  options.commit_spacing = knobs_.commit_spacing;
  options.queue_bytes = knobs_.queue_bytes;
  options.open_bytes = knobs_.open_bytes;
  options.open_raw_bytes = knobs_.open_raw_bytes;
  options.journal_bytes = knobs_.journal_bytes;
  options.job_idle = knobs_.job_idle;
  options.column_cache_bytes = knobs_.column_cache_bytes;
  options.series_at_open = knobs_.series_at_open;
  options.ballast_bytes = knobs_.ballast_bytes;
  options.merge_quiet = knobs_.merge_quiet;
  TACHO_ASSIGN_OR_RETURN(options.limits, server::limits::MakeLimitPolicy(process->config.limits()));
  options.clock_trusted = [watch = &process->watch] { return watch->IsTrusted(); };
  options.log = [this](absl::string_view line) { log_.Info(line, {{"part", "store"}}); };
  options.on_disk = [this, process = process.get()](storage::DiskState state,
                                                    const absl::Status& why) {
    process->disk_state = state;
    log_.Warn("disk", {{"state", static_cast<int>(state)}, {"why", why.message()}});
    if (state == storage::DiskState::kFailed) wants_to_end_ = true;
    if (!rotten_.empty() && absl::StrContains(why.message(), "Corruption")) said_damage_ = true;
  };
  auto store = storage::Store::Open(std::move(options));
  refuses_lies_ = (lied_ || !rotten_.empty()) && absl::IsDataLoss(store.status());
  if (!rotten_.empty()) NoteRefusal(store.status());
  TACHO_ASSIGN_OR_RETURN(process->store, std::move(store));
  process->limiting = std::make_unique<server::limits::SeriesLimiting>(
      process->store.get(), &process->registry, process->config.limits());
  process->quotas = std::make_unique<server::edge::Quotas>(
      server::edge::QuotasOptions{.config = process->config.quotas(),
                                  .queue_bytes = knobs_.queue_bytes,
                                  .registry = &process->registry,
                                  .resident = [] { return uint64_t{100} << 20; },
                                  .memory_round = knobs_.memory_round});
  server::ingest::IngestServiceOptions ingest;
  ingest.store = process->store.get();
  ingest.registry = &process->registry;
  ingest.limits = process->config.ingest();
  ingest.retention = absl::Nanoseconds(storage.retention());
  ingest.quotas = process->quotas.get();
  ingest.limiting = process->limiting.get();
  ingest.version = "simulated";
  ingest.ledger = &process->ledger;
  ingest.clocks = &process->clocks;
  ingest.clock_watch = &process->watch;
  ingest.log = log_;
  process->ingest = std::make_unique<server::ingest::IngestService>(std::move(ingest));
  process->watch.Start(absl::Seconds(1));
  process->published =
      process->store->Subscribe({.every_job = true, .buffer_bytes = 1u << 30}, nullptr);
  process_ = std::move(process);
  network_->Listen(address_, [service = process_->ingest.get()](const std::string& peer) {
    return service->Begin(peer, server::security::Caller::Anyone());
  });
  return absl::OkStatus();
}

void CollectorHost::Stop(End how) {
  if (process_ == nullptr) return;
  const OnHost on(host_);
  if (how == End::kOrderly) process_->ingest->Drain(MonotonicNow() + absl::Seconds(15));
  network_->Unlisten(address_);
  process_->watch.Stop();
  const absl::Status closed = process_->store->Close();
  if (how == End::kOrderly) log_.Info("collector closed", {{"status", closed.ToString()}});
  refused_before_ = refused_samples();
  reported_before_ = HasReportedLoss();
  process_->published.reset();
  while (process_->ingest->open_streams() > 0) SleepNs(1'000'000);
  process_->store.reset();
  process_.reset();
}

uint64_t CollectorHost::refused_samples() const {
  return refused_before_ + Counted("tacho_ingest_samples_rejected_total");
}

bool CollectorHost::HasReportedLoss() const {
  return reported_before_ || process_->store->Stats().missing_commits > 0 ||
         Counted("tacho_ingest_acknowledged_missing_messages_total") > 0;
}

uint64_t CollectorHost::Counted(absl::string_view name) const {
  if (process_ == nullptr) return 0;
  double sum = 0;
  for (const auto& family : process_->registry.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) sum += metric.counter.value;
  }
  return static_cast<uint64_t>(sum);
}

std::string CollectorHost::WhyNotReady() const {
  if (process_ == nullptr) return "it does not run";
  if (process_->disk_state != storage::DiskState::kWritable) return "its disk";
  if (process_->store->Stats().queued_bytes > 0) return "its queue";
  return process_->watch.Doubt();
}

void CollectorHost::Expire() const {
  if (knobs_.retention == absl::ZeroDuration()) return;
  const absl::Time reached = absl::Now() - knobs_.retention;
  model_->Expire(absl::ToUnixNanos(reached + kClockError),
                 absl::ToUnixNanos(reached - kDroppedWithin));
}

std::string CollectorHost::CheckPublished() {
  std::vector<storage::Change> changes;
  const absl::Status taken = process_->published->Take(&changes);
  if (!taken.ok()) return absl::StrCat("the subscription: ", taken.ToString());
  for (const storage::Change& change : changes) {
    if (change.layout == nullptr) continue;
    int source = 0;
    int column = 0;
    const storage::Series& first = *change.layout->series.front();
    if (!ParseMetric(first.metric->name, &source, &column)) continue;
    for (size_t row = 0; row < change.rows.rows; ++row) {
      const auto number = static_cast<uint64_t>(change.rows.Step(row));
      std::string wrong =
          model_->Published({static_cast<int>(first.source->task.value_or(0)), source}, number);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

std::string CollectorHost::CheckBounds() const {
  const storage::StoreStats stats = process_->store->Stats();
  // What one message, or one commit, may add to a bound before anybody looks.
  constexpr uint64_t kSlack = 64 << 10;
  if (stats.queued_bytes > knobs_.queue_bytes + kSlack) {
    return absl::StrCat(stats.queued_bytes, " bytes are queued");
  }
  if (stats.open_bytes > 2 * knobs_.open_bytes + kSlack) {
    return absl::StrCat("open rows have ", stats.open_bytes, " bytes");
  }
  if (stats.journal_bytes > 2 * knobs_.journal_bytes + kSlack) {
    return absl::StrCat("the journal has ", stats.journal_bytes, " bytes");
  }
  if (knobs_.series_per_job == 0) return "";
  const auto series = process_->store->FindSeries({.job = JobOf(0, 1)}, 10'000);
  if (series.ok() && series->size() > knobs_.series_per_job) {
    return absl::StrCat("a job has ", series->size(), " series, and may have ",
                        knobs_.series_per_job);
  }
  return "";
}

std::string CollectorHost::Rot() {
  std::string path = disk_.power()->Rot();
  if (path.empty()) return "nothing is synced";
  rotten_.push_back(path);
  return path;
}

void CollectorHost::NoteRefusal(const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status)) return;
  said_damage_ = true;
  for (const std::string& path : rotten_) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (absl::IsDataLoss(status) && absl::StrContains(status.message(), name)) return;
  }
  if (!lied_ && wrong_.empty()) {
    wrong_ = absl::StrCat(
        "a bit has changed in ", absl::StrJoin(rotten_, ", "),
        ", and the store does not open, and does not name the file: ", status.ToString());
  }
}

std::string CollectorHost::Failed(absl::string_view doing, const absl::Status& status) {
  if (!rotten_.empty() && absl::IsDataLoss(status)) {
    said_damage_ = true;
    return "";
  }
  return absl::StrCat(doing, ": ", status.ToString());
}

std::string CollectorHost::ReadSeries(storage::JobView* view, const storage::SeriesPtr& series,
                                      Model::Found* found) {
  int source = 0;
  int column = 0;
  if (!ParseMetric(series->metric->name, &source, &column)) return "a metric that nobody made";
  const Model::Source from = {static_cast<int>(series->source->task.value_or(0)), source};
  const auto reader = view->Read(series, {});
  storage::Chunk chunk;
  for (;;) {
    const auto more = reader->Next({}, &chunk);
    if (!more.ok()) return Failed("reading", more.status());
    if (!*more) return "";
    const storage::SampleColumns& samples = chunk.samples().columns;
    for (size_t i = 0; i < samples.size(); ++i) {
      std::string wrong = model_->FoundSample(from, static_cast<uint64_t>(samples.steps[i]), column,
                                              samples.times[i], samples.values[i], found);
      if (!wrong.empty()) return wrong;
    }
  }
}

std::string CollectorHost::QueryParts() {
  if (process_ == nullptr) return "";
  RangePart part;
  // The laboratory's wall clock, which is right.
  part.end_ns =
      absl::ToUnixNanos(absl::Now()) - static_cast<int64_t>(ScheduleRandom() % 300) * 1'000'000'000;
  part.begin_ns = part.end_ns - static_cast<int64_t>(10 + ScheduleRandom() % 50) * 1'000'000'000;
  part.max_points = 1 + static_cast<uint32_t>(ScheduleRandom() % 20);
  part.by_step = ScheduleRandom() % 4 == 0;
  part.effective = ScheduleRandom() % 2 == 0;
  for (const storage::JobSummary& job : process_->store->Jobs()) {
    part.job = job.name;
    const auto wrong = CheckRange(*process_->store, *model_, part, &range_samples_);
    if (wrong.ok() && wrong->empty()) continue;
    std::string text = wrong.ok() ? *wrong : Failed("a range query", wrong.status());
    // Rows that were returned before may be gone once damage was found.
    if (!text.empty() && !(wrong.ok() && said_damage_)) return text;
  }
  return "";
}

std::string CollectorHost::ReadJob(const std::string& job, Model::Found* found) {
  const std::unique_ptr<storage::JobView> view = process_->store->OpenJobView(job);
  const auto series = process_->store->FindSeries({.job = job}, 10'000);
  if (!series.ok()) return Failed("finding series", series.status());
  for (const storage::SeriesPtr& one : *series) {
    if (std::string wrong = ReadSeries(view.get(), one, found); !wrong.empty()) return wrong;
  }
  const auto events = view->Events(INT64_MIN, INT64_MAX);
  if (!events.ok()) return Failed("reading events", events.status());
  for (const storage::Event& event : *events) {
    if (event.kind != "simulated") continue;
    std::string wrong =
        model_->FoundEvent({static_cast<int>(event.source.task.value_or(0)), 0},
                           static_cast<uint64_t>(event.step.value_or(0)), event.time_ns, found);
    if (!wrong.empty()) return wrong;
  }
  // A message is there whole or not at all.
  for (const auto& [source, numbers] : found->numbers) {
    if (source.second == 0 || knobs_.series_per_job != 0 || said_damage_) continue;
    for (const auto& [number, columns] : numbers) {
      if (columns != (1 << kColumns) - 1) {
        return absl::StrCat("a query returned a part of row ", number, " of source ", source.second,
                            " of agent ", source.first);
      }
    }
  }
  return "";
}

std::string CollectorHost::Check(bool all, uint64_t lost, bool only_dropped) {
  if (!wrong_.empty()) return wrong_;
  if (process_ == nullptr) return "";
  std::string wrong = CheckPublished();
  if (wrong.empty()) wrong = CheckBounds();
  // A store that has lost something stores it again, and cannot seal or trim as it should.
  if (!wrong.empty()) return HasSaidDamage() ? "" : wrong;
  Expire();
  // First what had to be there, then the views.
  const auto required = all ? model_->Everything() : model_->Acknowledged();
  const uint64_t refused = refused_samples();
  Model::Found found;
  for (const storage::JobSummary& job : process_->store->Jobs()) {
    if (wrong = ReadJob(job.name, &found); !wrong.empty()) return wrong;
  }
  if (HasSaidDamage()) return "";
  const Model::Compared compared = model_->Compare(found, required);
  if (!compared.wrong.empty()) return compared.wrong;
  // A loss is reported when the collector starts, or when the agent speaks to it again.
  if (lied_ && (!all || HasReportedLoss())) return "";
  wrong = Judge(compared, lost, refused, only_dropped);
  return wrong.empty() ? QueryParts() : wrong;
}

std::string CollectorHost::Judge(const Model::Compared& compared, uint64_t lost, uint64_t refused,
                                 bool only_dropped) const {
  const uint64_t counted = lost + (knobs_.series_per_job == 0 ? 0 : refused);
  if (compared.missing > counted) {
    return absl::StrCat(compared.example, " is missing, and ", compared.missing - 1,
                        " other samples; ", counted, " were counted as lost or refused");
  }
  if (compared.missing_wrong_times > refused + lost) {
    return absl::StrCat(compared.missing_wrong_times,
                        " acknowledged samples of wrong clocks are missing, but only ", refused,
                        " were counted as refused");
  }
  if (!compared.not_dropped.empty() && only_dropped && knobs_.series_per_job == 0) {
    return absl::StrCat(compared.not_dropped, " is missing, and its spool has not dropped it");
  }
  return "";
}

}  // namespace tacho::simulate
