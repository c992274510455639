#include "server/history/history_bucket.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/base/host_name.h"
#include "proto/base/status_macros.h"
#include "server/history/bucket_config.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::history {
namespace {

// A request on the spot takes milliseconds, one of a large block to another continent seconds.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                          0.5,   1,    2.5,   5,    10,  30};

std::string CachePathOf(const config::v1::Collector& config) {
  const std::string& path = config.bucket().cache_path();
  return path.empty() ? absl::StrCat(config.storage().path(), "/bucket-cache") : path;
}

bool AsksForSharedAcks(const config::v1::Collector& config) {
  return config.cluster().ack() == "shared";
}

absl::Status WithKey(const char* key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

}  // namespace

HistoryBucket::HistoryBucket(Options options)
    : options_(std::move(options)),
      requests_(metrics::CounterFamily(options_.registry, "tacho_bucket_requests_total")),
      durations_(
          metrics::HistogramFamily(options_.registry, "tacho_bucket_request_duration_seconds")),
      retries_(metrics::CounterFamily(options_.registry, "tacho_bucket_retries_total")),
      bytes_sent_(metrics::NewCounter(options_.registry, "tacho_bucket_bytes_total",
                                      {{"direction", "sent"}})),
      bytes_received_(metrics::NewCounter(options_.registry, "tacho_bucket_bytes_total",
                                          {{"direction", "received"}})) {}

absl::StatusOr<std::unique_ptr<HistoryBucket>> HistoryBucket::Open(Options options) {
  std::unique_ptr<HistoryBucket> made(new HistoryBucket(std::move(options)));
  const auto& config = made->options_.config;
  storage::ProvenBucket::Options proven;
  proven.bucket = BucketOptionsOf(config.bucket());
  proven.bucket.on_request = [self = made.get()](const auto& request) { self->Count(request); };
  proven.to_share = AsksForSharedAcks(config);
  proven.on_report = [self = made.get()](const auto& report) { self->Report(report); };
  auto bucket = storage::ProvenBucket::Open(std::move(proven));
  if (!bucket.ok()) return WithKey("bucket", bucket.status());
  made->bucket_ = *std::move(bucket);

  storage::PieceCache::Options cache;
  cache.path = CachePathOf(config);
  cache.max_bytes = config.bucket().cache_bytes();
  std::error_code error;
  std::filesystem::create_directories(cache.path, error);  // The cache reports what fails.
  auto pieces = storage::PieceCache::Open(std::move(cache));
  if (!pieces.ok()) return WithKey("bucket.cache_path", pieces.status());
  made->pieces_ = *std::move(pieces);
  return made;
}

absl::Status HistoryBucket::Check(const config::v1::Collector& config) {
  if (config.bucket().url().empty()) {
    if (!AsksForSharedAcks(config)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "cluster.ack: shared needs a bucket: set bucket.url, or cluster.ack: local");
  }
  const auto bucket = storage::ProvenBucket::Open({.bucket = BucketOptionsOf(config.bucket())});
  return bucket.ok() ? absl::OkStatus() : WithKey("bucket", bucket.status());
}

storage::HistoryOptions HistoryBucket::history() {
  storage::HistoryOptions history;
  history.bucket = bucket_.get();
  history.pieces = pieces_.get();
  history.owner = SystemHostName();
  history.shard = options_.shard;
  history.shards = options_.shards;
  history.local_retention = absl::Nanoseconds(options_.config.storage().local_retention());
  return history;
}

storage::SharedOptions HistoryBucket::shared() const {
  const auto& cluster = options_.config.cluster();
  return {.on = AsksForSharedAcks(options_.config),
          .interval = absl::Nanoseconds(cluster.ack_interval()),
          .max_unshipped_bytes = cluster.max_unshipped_bytes()};
}

void HistoryBucket::Count(const storage::FinishedRequest& request) {
  requests_.Add({{"operation", request.operation}, {"code", absl::StrCat(request.code)}})
      .Increment();
  durations_.Add({{"operation", request.operation}}, kSeconds)
      .Observe(absl::ToDoubleSeconds(request.took));
  bytes_sent_.Increment(static_cast<double>(request.bytes_sent));
  bytes_received_.Increment(static_cast<double>(request.bytes_received));
  if (*request.retry != '\0') retries_.Add({{"reason", request.retry}}).Increment();
  const absl::string_view operation = request.operation;
  if (absl::StartsWith(operation, "get")) {
    ++reads_;
  } else if (operation != "delete") {
    ++writes_;
  }
}

HistoryBucket::Use HistoryBucket::use() const {
  return {.writes = writes_,
          .reads = reads_,
          .bytes_sent = static_cast<uint64_t>(bytes_sent_.Value()),
          .bytes_received = static_cast<uint64_t>(bytes_received_.Value()),
          .during = MonotonicNow() - opened_};
}

void HistoryBucket::Report(const storage::ProbeReport& report) {
  const std::string& url = options_.config.bucket().url();
  if (AsksForSharedAcks(options_.config)) {
    if (report.fit_to_share) {
      options_.log.Info("the bucket keeps its promises", {{"url", url}});
    } else {
      options_.log.Error("the bucket is not fit for cluster.ack: shared",
                         {{"url", url}, {"why", report.verdict}});
    }
  } else if (report.fit_for_history) {
    options_.log.Info("the bucket can keep history", {{"url", url}});
  } else {
    options_.log.Error("the bucket cannot keep history", {{"url", url}, {"why", report.verdict}});
  }
}

std::vector<prometheus::MetricFamily> HistoryBucket::Families(const storage::Store& store) const {
  const storage::PieceCache::Stats cache = pieces_->stats();
  const storage::HistoryState history = store.History();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](metrics::Metric metric, uint64_t value) {
    families.push_back(metrics::OneLine(metric, static_cast<double>(value)));
  };
  add("tacho_bucket_cache_hits_total", cache.hits);
  add("tacho_bucket_cache_misses_total", cache.misses);
  add("tacho_bucket_cache_disk_errors_total", cache.disk_errors);
  add("tacho_bucket_cache_bytes", cache.bytes);
  add("tacho_bucket_days", history.days);
  add("tacho_bucket_failing", history.status.ok() ? 0 : 1);
  const storage::SharedState shared = store.Shared();
  if (!shared.on) return families;
  const auto line = [&](metrics::Metric metric, double value) {
    families.push_back(metrics::EmptyFamily(metric));
    metrics::AddLine({{"shard", absl::StrCat(options_.shard)}}, value, &families.back());
  };
  line("tacho_shard_unshipped_bytes", static_cast<double>(shared.unshipped_bytes));
  line("tacho_shard_unshipped_seconds", absl::ToDoubleSeconds(shared.unshipped_for));
  line("tacho_shard_epoch", static_cast<double>(shared.epoch));
  line("tacho_shard_fenced", shared.fenced ? 1 : 0);
  line("tacho_shard_commits_total", static_cast<double>(shared.commits));
  line("tacho_shard_failed_commits_total", static_cast<double>(shared.failed_commits));
  line("tacho_shard_restore_seconds", absl::ToDoubleSeconds(shared.restore));
  return families;
}

}  // namespace tacho::server::history
