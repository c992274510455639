#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/base/status_macros.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/keys.h"
#include "storage/db/rocksdb_status.h"
#include "storage/durable_store.h"
#include "storage/journal/rows_entry.h"

namespace tacho::storage {
namespace {

// How often progress of the recovery is told.
constexpr absl::Duration kRecoveryReport = absl::Seconds(1);

}  // namespace

absl::StatusOr<absl::flat_hash_map<LayoutId, uint64_t>> DurableStore::ReadSealedPositions() const {
  absl::flat_hash_map<LayoutId, uint64_t> sealed;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_->db->NewIterator(rocksdb::ReadOptions(), database_->state));
  for (it->Seek("P"); it->Valid() && it->key().starts_with("P"); it->Next()) {
    ByteReader key(View(it->key()));
    ByteReader value(View(it->value()));
    key.Byte();
    key.Be32();
    sealed[key.Be64()] = value.Varint();
    if (!key.AtEnd() || !value.AtEnd()) {
      return absl::DataLossError("the sealed position under " + it->key().ToString(true) +
                                 " is damaged");
    }
  }
  TACHO_RETURN_IF_ERROR(FromRocksDb(it->status(), "read sealed positions"));
  return sealed;
}

absl::Status DurableStore::ReplayJournal() {
  const auto sealed = ReadSealedPositions();
  if (!sealed.ok()) return sealed.status();
  const absl::Time now = options_.now();
  uint64_t total = 0;
  database_->db->GetIntProperty(database_->journal, rocksdb::DB::Properties::kEstimateNumKeys,
                                &total);
  absl::Time told = absl::Now();
  uint64_t replayed = 0;
  return journal_.Recover([&](uint64_t position, absl::string_view bytes) {
    const auto entry = DecodeRowsEntry(bytes);
    if (!entry) return absl::DataLossError(absl::StrCat("journal entry ", position, " is damaged"));
    if (++replayed % 1024 == 0 && absl::Now() - told >= kRecoveryReport) {
      told = absl::Now();
      Log(absl::StrCat("recovering: ", replayed, " of about ", total, " journal entries"));
    }
    Reach(options_.at_point, crash_point::kOpenReplay);
    const auto done = sealed->find(entry->layout);
    if (done != sealed->end() && position <= done->second) return absl::OkStatus();
    if (const absl::Status used = index_.Use(entry->job); absl::IsNotFound(used)) {
      return absl::OkStatus();  // The job has expired.
    }
    const auto found = index_.FindLayout(entry->job, entry->layout);
    if (absl::IsNotFound(found.status())) {
      return absl::DataLossError(absl::StrCat("journal entry ", position, ": layout ",
                                              entry->layout, " is not in the index"));
    }
    if (!found.ok()) return found.status();
    TACHO_RETURN_IF_ERROR(jobs_.Use(entry->job));
    const LayoutPtr& layout = *found;
    if (layout->series.size() != entry->columns || layout->has_steps != entry->has_steps) {
      return absl::DataLossError(
          absl::StrCat("journal entry ", position, " does not fit its layout"));
    }
    head_.Append(layout, *entry, position, now);
    jobs_.Include(*layout, *entry);
    // The journal may hold more than memory should: what is sealed here is trimmed later.
    return sealer_.RelieveMemory();
  });
}

void DurableStore::HeadForgets(JobId job) {
  const int64_t last_ns = jobs_.Summarise(job).extent.last_time_ns;
  int64_t known = head_knows_after_ns_;
  while (last_ns > known && !head_knows_after_ns_.compare_exchange_weak(known, last_ns)) {
  }
}

absl::Status DurableStore::LoadBusyJobs() {
  const int64_t idle_before_ns = options_.job_idle <= absl::ZeroDuration()
                                     ? INT64_MIN
                                     : absl::ToUnixNanos(options_.now() - options_.job_idle);
  for (const SeriesIndex::JobInfo& job : index_.Jobs()) {
    if (jobs_.Summarise(job.id).extent.last_time_ns < idle_before_ns) continue;
    TACHO_RETURN_IF_ERROR(index_.Use(job.id));
    if (absl::Status status = jobs_.Use(job.id); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DurableStore::Recover() {
  const auto at = [this](absl::string_view point) -> std::function<absl::Status()> {
    return [this, point] {
      Reach(options_.at_point, point);
      return absl::OkStatus();
    };
  };
  Reach(options_.at_point, crash_point::kOpenDatabase);
  const absl::Time begun = absl::Now();
  const auto steps = {
      std::function<absl::Status()>([this] { return index_.Load(); }),
      std::function<absl::Status()>([this] { return jobs_.Load(); }),
      std::function<absl::Status()>([this] {
        for (const SeriesIndex::JobInfo& job : index_.Jobs()) HeadForgets(job.id);
        return absl::OkStatus();
      }),
      at(crash_point::kOpenIndex),
      std::function<absl::Status()>([this] { return LoadBusyJobs(); }),
      std::function<absl::Status()>([this] { return committer_.Recover(); }),
      at(crash_point::kOpenSequences),
      std::function<absl::Status()>([this] { return ReplayJournal(); }),
  };
  for (const auto& step : steps) {
    if (absl::Status status = step(); !status.ok()) return status;
  }
  Log(absl::StrCat("recovered ", index_.counts().series, " series and ",
                   journal_.end() - journal_.begin(), " journal entries (", journal_.bytes() >> 20,
                   " MiB) in ",
                   absl::FormatDuration(absl::Trunc(absl::Now() - begun, absl::Milliseconds(1)))));
  // Numbers only keep events of one time apart; nanoseconds since 1970 never meet an earlier one.
  Reach(options_.at_point, crash_point::kOpenReady);
  next_event_ = static_cast<uint64_t>(absl::ToUnixNanos(absl::Now()));
  running_ = true;
  NoteAppended();
  committer_.Start();
  if (options_.background) {
    sealer_.Start();
    merger_.Start();
  }
  return absl::OkStatus();
}

}  // namespace tacho::storage
