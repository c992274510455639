#include "server/history/bucket_modes.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/history/bucket_config.h"
#include "storage/bucket/bucket_options.h"
#include "storage/check_store.h"
#include "storage/codec/keys.h"
#include "storage/shard/log_reader.h"
#include "storage/shipping/bucket_check.h"
#include "storage/shipping/bucket_restore.h"

namespace tacho::server::history {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
// A bucket that is away is asked for about a minute.
constexpr int kMaxTries = 6;
constexpr absl::Duration kFirstWait = absl::Seconds(2);

int Fail(int code, absl::string_view what, std::ostream& err) {
  err << "tacho-collector: " << what << "\n";
  return code;
}

// Null, and the reason is written: there is none.
std::unique_ptr<storage::Bucket> OpenBucketOf(const config::v1::Collector& config,
                                              std::ostream& err) {
  if (config.bucket().url().empty()) {
    Fail(kExitUsage, "no bucket: name a configuration with bucket.url by --config FILE", err);
    return nullptr;
  }
  auto bucket = storage::OpenBucket(BucketOptionsOf(config.bucket()));
  if (bucket.ok()) return *std::move(bucket);
  Fail(kExitUsage, absl::StrCat("bucket: ", bucket.status().message()), err);
  return nullptr;
}

absl::Status WaitToRetry(int tries, std::ostream& err) {
  if (tries >= kMaxTries) {
    return absl::UnavailableError(
        "the bucket does not answer: try again later, or ask it with tachoctl bucket probe");
  }
  if (tries == 1) err << "the bucket does not answer; trying again\n" << std::flush;
  absl::SleepFor(kFirstWait * (1 << (tries - 1)));
  return absl::OkStatus();
}

// "2026-11-20", of days from 1 January 1970.
std::string Date(int64_t day) {
  return absl::FormatTime("%Y-%m-%d", absl::UnixEpoch() + absl::Hours(24) * day,
                          absl::UTCTimeZone());
}

// Where the reading ended, in sentences.
void DescribeEnd(const std::vector<storage::LogExtent>& logs, std::ostream& out) {
  if (logs.empty()) return;
  const storage::LogExtent& last = logs.back();
  if (last.end == last.first) {
    out << "The log of epoch " << last.epoch << " has nothing behind the copy.\n";
  } else {
    out << "The log was read up to segment " << last.end - 1 << " of epoch " << last.epoch << ".\n";
  }
  if (last.behind > 0) {
    out << last.behind << " segments behind number " << last.end
        << ", which is missing, are not used. They were not acknowledged, unless somebody has "
           "deleted that one.\n";
  }
}

std::string Figures(const storage::BucketRestored& restored) {
  return absl::StrCat("epoch=", restored.epoch, " owner=", restored.owner,
                      " version=", restored.version, " state_files=", restored.state_files,
                      " segments=", restored.segments, " records=", restored.records,
                      " closed_days=", restored.days, " blocks=", restored.blocks,
                      " bytes=", restored.bytes, " log_bytes=", restored.log_bytes);
}

}  // namespace

int RestoreFromBucket(const config::v1::Collector& config, const RestoreRequest& request,
                      absl::Time now, std::ostream& out, std::ostream& err) {
  const auto bucket = OpenBucketOf(config, err);
  if (bucket == nullptr) return kExitUsage;
  // The restore makes the last directory.
  std::error_code error;
  const std::filesystem::path parent =
      std::filesystem::absolute(request.directory, error).lexically_normal().parent_path();
  std::filesystem::create_directories(parent, error);
  storage::BucketRestoreOptions options;
  options.path = request.directory;
  options.bucket = bucket.get();
  options.shard = request.shard;
  options.before_retry = [&](int tries) { return WaitToRetry(tries, err); };
  if (request.days.has_value()) {
    options.closed_days_from =
        storage::DayOf(absl::ToUnixNanos(now)) - static_cast<int64_t>(*request.days);
  }
  options.log = [&](absl::string_view line) { err << line << "\n" << std::flush; };
  const auto restored = storage::RestoreFromBucket(options);
  if (!restored.ok()) {
    Fail(kExitFailure, restored.status().message(), err);
    if (!absl::IsFailedPrecondition(restored.status()) &&
        storage::IsRestoreBegun(request.directory)) {
      err << request.directory
          << " is half made, and no collector opens it: delete it before you restore again.\n";
    }
    return kExitFailure;
  }
  err << "verifying " << request.directory << "\n" << std::flush;
  const auto contents = storage::CheckStore(request.directory);
  if (!contents.ok()) {
    return Fail(kExitFailure,
                absl::StrCat("the restored directory is not whole: ", contents.status().message()),
                err);
  }
  out << request.directory << ": restored from " << config.bucket().url() << "; "
      << Figures(*restored) << "\n"
      << request.directory << ": whole; jobs=" << contents->jobs << " series=" << contents->series
      << " days=" << contents->days << " table_bytes=" << contents->table_bytes
      << " journal_entries=" << contents->journal_entries << " newest="
      << (contents->newest_ns.has_value()
              ? absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(*contents->newest_ns),
                                 absl::UTCTimeZone())
              : "none")
      << "\n";
  DescribeEnd(restored->logs, out);
  if (!restored->left_out.empty()) {
    out << "Days that are not in the directory: "
        << absl::StrJoin(restored->left_out, ", ",
                         [](std::string* text, int64_t day) { absl::StrAppend(text, Date(day)); })
        << "\n";
  }
  out << "What its owner acknowledges from now on is not in the directory.\n";
  return 0;
}

int CheckBucket(const config::v1::Collector& config, uint32_t shard, bool deep, std::ostream& out,
                std::ostream& err) {
  const auto bucket = OpenBucketOf(config, err);
  if (bucket == nullptr) return kExitUsage;
  const auto checked = storage::CheckBucket(
      {.bucket = bucket.get(),
       .shard = shard,
       .before_retry = [&](int tries) { return WaitToRetry(tries, err); },
       .deep = deep,
       .log = [&](absl::string_view line) { err << line << "\n"
                                                << std::flush; }});
  if (!checked.ok()) return Fail(kExitFailure, checked.status().message(), err);
  const std::string& url = config.bucket().url();
  for (const storage::FoundFault& fault : checked->faults) out << fault.what << "\n";
  out << url << ": ";
  if (checked->faults.empty()) {
    out << (deep ? "whole" : "complete");
  } else {
    out << checked->faults.size() << (checked->faults.size() == 1 ? " fault" : " faults");
  }
  out << "; epoch=" << checked->epoch << " owner=" << checked->owner
      << " version=" << checked->version << " copy=" << (checked->has_copy ? "yes" : "no")
      << " state_files=" << checked->state_files << " segments=" << checked->segments
      << " closed_days=" << checked->days << " blocks=" << checked->blocks
      << " bytes=" << checked->bytes << "\n";
  DescribeEnd(checked->logs, out);
  if (!deep && checked->blocks > 0) {
    out << "Of blocks only their sizes were compared; --deep reads them.\n";
  }
  return checked->faults.empty() ? 0 : kExitFailure;
}

}  // namespace tacho::server::history
