// Makes rows of a request's samples, counts what is refused, and hands the rows to the store.
#include "server/interop/intake_request.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/stale_marker.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/interop/passing/passed_series.h"
#include "server/interop/passing/settling.h"

namespace tacho::server::interop {
namespace {

// Of a request. A sample whose time no other series of its sheet has makes a row of its own, so
// that a few MiB may become a hundred times as much. The store's queue takes 64 MiB by default.
constexpr uint64_t kMaxRowBytes = uint64_t{32} << 20;

}  // namespace

absl::Status Intake::Request::MakeRows() {
  const ingest::TimeWindow window = options_.admission->Window();
  const int64_t now_s = absl::ToUnixSeconds(options_.monotonic());
  const Sheet* checked = nullptr;
  bool has_own = false;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.kind == Place::Kind::kElsewhere) {
      if (can_pass_) {
        passed_[place.column].push_back(static_cast<uint32_t>(i));
      } else {
        RefuseElsewhere(write_.series[i]);
      }
      continue;
    }
    has_own = has_own || place.kind != Place::Kind::kDropped;
    if (place.kind == Place::Kind::kInvalid) {
      Refuse("", v1::Reject::REASON_LABEL_INVALID, write_.series[i].count, "", invalid_);
    }
    if (place.kind != Place::Kind::kStored) continue;
    if (place.sheet.get() != checked) {
      checked = place.sheet.get();
      TACHO_RETURN_IF_ERROR(options_.admission->CheckRights(
          sender_.rights->CheckJob(checked->layout.job_name, "job")));
      TACHO_RETURN_IF_ERROR(intake_.CheckRates(bucket_.get(), checked->layout.job_bucket.get()));
      checked->used_s.store(now_s, std::memory_order_relaxed);
    }
    AddSeries(write_.series[i], place, window);
    if (row_bytes_ > kMaxRowBytes) {
      return errors::ErrorOf(
          errors::Failure::kTooLarge,
          "series that are stored together have too many different times: send fewer samples a "
          "request");
    }
  }
  if (elsewhere_ == 0 || has_own) return absl::OkStatus();
  options_.metrics->Misdirected(elsewhere_);
  return errors::ErrorOf(errors::Failure::kMisdirected, elsewhere_example_);
}

void Intake::Request::AddSeries(const ForeignSeries& series, const Place& place,
                                const ingest::TimeWindow& window) {
  const Sheet& sheet = *place.sheet;
  const std::string& job = sheet.layout.job_name;
  if (const int32_t by = sheet.refused_by[place.column]; by != Sheet::kStored) {
    const auto& why = sheet.layout.concerned[static_cast<size_t>(by)];
    Refuse(job, ingest::RejectReasonOf(why.limit), series.count, why.example, why.detail);
    return;
  }
  if (last_rows_ == nullptr || last_rows_->sheet != place.sheet) {
    Rows*& rows = rows_of_[&sheet];
    if (rows == nullptr) {
      rows = rows_.emplace_back(std::make_unique<Rows>()).get();
      rows->sheet = place.sheet;
    }
    last_rows_ = rows;
  }
  Rows* const rows = last_rows_;
  for (uint32_t i = 0; i < series.count; ++i) {
    const ForeignSample& sample = write_.samples[series.first + i];
    if (sample.time_ns < window.oldest_ns || sample.time_ns > window.newest_ns) {
      refused_for_time_ = true;
      Refuse(job,
             sample.time_ns > window.newest_ns ? v1::Reject::REASON_FUTURE
                                               : v1::Reject::REASON_TOO_OLD,
             1, sheet.layout.first_series, "");
      continue;
    }
    if (series.part == ForeignSeries::Part::kSample) ++outcome_.stored;
    if (series.part == ForeignSeries::Part::kHistogram) ++outcome_.stored_histograms;
    if (IsStaleMarker(sample.value)) {  // A row without a value says the same.
      if (write_.ends_at_once) rows->ended.emplace_back(place.column, sample.time_ns);
      continue;
    }
    rows->values[RowAt(sample.time_ns, rows) * sheet.layout.width + place.column] = sample.value;
    ++rows->samples;
  }
}

// The series of a sheet are sent one after the other, with the same times: the row after the last
// one, then the newest, and then any of them.
size_t Intake::Request::RowAt(int64_t time_ns, Rows* rows) {
  constexpr size_t kLookBack = 16;
  const auto take = [rows](size_t row) {
    rows->next = row + 1;
    return row;
  };
  const size_t size = rows->times.size();
  if (rows->next < size && rows->times[rows->next] == time_ns) return take(rows->next);
  for (size_t back = 1; back <= std::min(size, kLookBack); ++back) {
    if (rows->times[size - back] == time_ns) return take(size - back);
  }
  if (size > kLookBack) {
    for (size_t row = rows->row_at.size(); row < size; ++row) {
      rows->row_at.emplace(rows->times[row], row);
    }
    const auto known = rows->row_at.find(time_ns);
    if (known != rows->row_at.end()) return take(known->second);
  }
  rows->times.push_back(time_ns);
  rows->values.resize(rows->values.size() + rows->sheet->layout.width, StaleMarker());
  row_bytes_ += sizeof(int64_t) + rows->sheet->layout.width * sizeof(double);
  return take(size);
}

void Intake::Request::Refuse(const std::string& job, v1::Reject::Reason reason, uint64_t samples,
                             absl::string_view example, absl::string_view detail) {
  Refused& refused = refused_[{job, reason}];
  if (refused.samples == 0) {
    refused.example = std::string(example);
    refused.detail = std::string(detail);
  }
  refused.samples += samples;
}

void Intake::Request::Report() {
  if (elsewhere_ > 0) {
    options_.metrics->Misdirected(elsewhere_);
    outcome_.refusal = elsewhere_example_;
    outcome_.refused += elsewhere_;
  }
  absl::MutexLock lock(&intake_.report_mutex_);
  for (auto& [key, refused] : refused_) {
    if (key.second == v1::Reject::REASON_FUTURE) refused.detail = intake_.report_.FutureDetail();
    if (key.second == v1::Reject::REASON_TOO_OLD) refused.detail = intake_.report_.TooOldDetail();
    intake_.report_.Refused(key.first, key.second, refused.samples, refused.example,
                            [&refused = refused] { return refused.detail; });
    if (outcome_.refusal.empty()) {
      outcome_.refusal =
          absl::StrCat(ingest::RejectReasonName(key.second), ": ", refused.detail,
                       refused.example.empty() ? "" : ", for example ", refused.example);
    }
    outcome_.refused += refused.samples;
  }
}

absl::Status Intake::Request::FindLayouts(std::vector<storage::LayoutPtr>* layouts) {
  for (const auto& rows : rows_) {
    const ingest::StreamLayout& layout = rows->sheet->layout;
    if (layout.id == 0 || (rows->times.empty() && rows->ended.empty())) {
      layouts->push_back(nullptr);
      continue;
    }
    storage::LayoutPtr found = layout.layout.lock();
    if (found == nullptr) {
      auto stored = options_.store->FindLayout(layout.job, layout.id);
      if (absl::IsNotFound(stored.status()) && rows->times.empty()) {
        layouts->push_back(nullptr);  // It has ended already.
        continue;
      }
      if (absl::IsNotFound(stored.status())) {
        // The sender sends the request again, and then its series get new sheets.
        intake_.sheets_.Forget(rows->sheet);
        return absl::UnavailableError(
            absl::StrCat("the job ", layout.job_name, " has expired; send again to begin it anew"));
      }
      TACHO_RETURN_IF_ERROR(stored.status());
      found = *std::move(stored);
    }
    layouts->push_back(std::move(found));
  }
  return absl::OkStatus();
}

void Intake::Request::AddEnds(const Rows& rows, const storage::LayoutPtr& layout,
                              std::vector<storage::SeriesEnd>* ends) {
  if (layout == nullptr) return;
  const ingest::StreamLayout& sent = rows.sheet->layout;
  for (const auto& [column, time_ns] : rows.ended) {
    size_t stored = column;
    if (!sent.whole) {
      const auto at = std::lower_bound(sent.columns.begin(), sent.columns.end(), column);
      if (at == sent.columns.end() || *at != column) continue;
      stored = static_cast<size_t>(at - sent.columns.begin());
    }
    ends->push_back({storage::SeriesPtr(layout, layout->series[stored]), time_ns});
  }
}

std::vector<Intake::Request::Passed> Intake::Request::MakePassed() const {
  std::vector<Passed> passed;
  const auto pass = [&](uint32_t shard, const std::vector<uint32_t>& series) {
    for (auto& message : PassedSeries(write_, series)) {
      passed.emplace_back(shard, std::move(message));
    }
  };
  for (const auto& [shard, series] : passed_) pass(shard, series);
  if (!can_pass_ || !TellsMetrics(write_)) return passed;
  // Series of these metrics may come later, in requests that say nothing of them.
  const cluster::Membership& membership = *options_.admission->membership();
  for (uint32_t shard = 0; shard < membership.shards(); ++shard) {
    if (shard != membership.own() && !passed_.contains(shard)) pass(shard, {});
  }
  return passed;
}

void Intake::Request::Send(Done done) {
  std::vector<storage::LayoutPtr> layouts;
  if (auto status = FindLayouts(&layouts); !status.ok()) {
    return done({.status = std::move(status)});
  }
  Report();
  std::vector<storage::SeriesEnd> ends;
  for (size_t i = 0; i < rows_.size(); ++i) AddEnds(*rows_[i], layouts[i], &ends);
  if (!ends.empty()) {
    done = [done = std::move(done), store = options_.store,
            ends = std::move(ends)](WriteOutcome outcome) {
      if (outcome.status.ok()) store->EndLatest(ends);
      done(std::move(outcome));
    };
  }
  std::vector<Passed> passed = MakePassed();
  const auto settling = std::make_shared<Settling>(
      std::move(outcome_), rows_.size() + passed.size() + 1, std::move(done));
  for (auto& [shard, message] : passed) {
    options_.elsewhere->StoreSeries(
        shard, sender_, std::move(message),
        // A member that only learns of metrics need not be there.
        [settling, needed = passed_.contains(shard)](const WriteOutcome& outcome) {
          settling->Add(needed ? outcome : WriteOutcome());
        });
  }
  const auto settle = [settling](const absl::Status& status) { settling->Settle(status); };
  constexpr ingest::TimeWindow kAll{INT64_MIN, INT64_MAX};
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (layouts[i] == nullptr || rows_[i]->times.empty()) {
      settle(absl::OkStatus());
      continue;
    }
    Rows& rows = *rows_[i];
    rows.selection.Select({rows.times, {}, rows.values}, rows.sheet->layout, kAll);
    options_.quotas->Charge(rows.samples, bucket_.get(), rows.sheet->layout.job_bucket.get());
    options_.metrics->BatchAdmitted(rows.times.size(), rows.samples);
    options_.store->AppendRows({}, layouts[i], rows.selection.rows(), settle);
  }
  settle(absl::OkStatus());
}

}  // namespace tacho::server::interop
