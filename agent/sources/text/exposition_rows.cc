#include "agent/sources/text/exposition_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/sources/rows/agent_metrics.h"

namespace tacho::agent {
namespace {

constexpr char kTooMany[] = "max_series";
constexpr char kNewLayout[] = "changing_series";

}  // namespace

ExpositionRows::ExpositionRows(SeriesRuler ruler, ExpositionRowsOptions options)
    : ruler_(std::move(ruler)),
      options_(std::move(options)),
      own_rows_(options_.own_job, options_.host, SeriesRows::Leaves::kNextLayout) {}

uint64_t ExpositionRows::left_out() const {
  uint64_t count = 0;
  for (const auto& [reason, samples] : left_out_) {
    if (reason != LeftOutName(SeriesRuler::LeftOut::kNotWanted)) count += samples;
  }
  return count;
}

void ExpositionRows::SetOwn(const Metric& metric, double value) {
  own_.Add(metric, {{"source", options_.source}}, value);
}

absl::Status ExpositionRows::Write(absl::Time now, const Exposition& read, RowSink* sink) {
  for (auto& [reason, samples] : left_out_) samples = 0;
  filed_ = 0;
  File(read);
  absl::Status result = WriteTimed(now, sink);
  uint64_t without_layout = 0;
  for (const auto& [key, rows] : rows_) {
    result.Update(rows->Write(now, &budget_, sink, &without_layout));
  }
  if (without_layout > 0) left_out_[kNewLayout] += without_layout;
  std::erase_if(rows_, [](const auto& entry) { return entry.second->silent(); });
  result.Update(WriteOwn(now, sink));
  return result;
}

void ExpositionRows::File(const Exposition& read) {
  for (const ExpositionSample& sample : read.samples) {
    FiledSeries filed;
    const auto why = ruler_.File(read.families[sample.family], sample, &filed);
    if (why != SeriesRuler::LeftOut::kNo) {
      ++left_out_[std::string(LeftOutName(why))];
      continue;
    }
    if (filed_ >= options_.max_series) {
      ++left_out_[kTooMany];
      continue;
    }
    ++filed_;
    // A time before 1970, or at the end of the representable range, counts as none.
    if (options_.timestamps && sample.time_ns && *sample.time_ns >= 0 &&
        *sample.time_ns < INT64_MAX) {
      FileAtItsTime(sample, std::move(filed));
    } else if (SeriesRows* const rows = RowsOf(filed.source); rows != nullptr) {
      rows->Add(filed.series, sample.value);
    } else {
      ++left_out_["max_jobs"];
    }
  }
}

SeriesRows* ExpositionRows::RowsOf(const v1::Source& source) {
  const SourceKey key(source.job(), source.has_task() ? int64_t{source.task()} : -1);
  const auto known = rows_.find(key);
  if (known != rows_.end()) return known->second.get();
  if (rows_.size() >= kMaxSources) return nullptr;
  return rows_.emplace(key, std::make_unique<SeriesRows>(source)).first->second.get();
}

void ExpositionRows::FileAtItsTime(const ExpositionSample& sample, FiledSeries filed) {
  const SourceKey key(filed.source.job(),
                      filed.source.has_task() ? int64_t{filed.source.task()} : -1);
  const std::string name =
      absl::StrCat(key.first, "\n", key.second, "\n", filed.series.SerializeAsString());
  const auto newest = newest_.find(name);
  if (newest != newest_.end() && newest->second >= *sample.time_ns) return;  // Seen before.
  if (newest == newest_.end() && newest_.size() >= 4 * size_t{options_.max_series}) {
    newest_.clear();  // Forgets old series. A sample that is stored again replaces itself.
  }
  const std::pair<int64_t, SourceKey> at(*sample.time_ns, key);
  if (!timed_.contains(at) && timed_.size() >= kMaxTimes) {
    ++left_out_["max_times"];
    return;
  }
  newest_[name] = *sample.time_ns;
  auto& [layout, values] = timed_[at];
  *layout.mutable_source() = filed.source;
  *layout.add_series() = std::move(filed.series);
  values.push_back(sample.value);
}

absl::Status ExpositionRows::WriteTimed(absl::Time now, RowSink* sink) {
  absl::Status result;
  for (auto& [at, row] : timed_) {
    const std::string content = row.first.SerializeAsString();
    auto layout = timed_layouts_.find(content);
    if (layout == timed_layouts_.end()) {
      if (!budget_.Take(now)) {
        left_out_[kNewLayout] += row.second.size();
        continue;
      }
      const absl::StatusOr<uint32_t> defined = sink->DefineLayout(row.first);
      if (!defined.ok()) {
        result.Update(defined.status());
        continue;
      }
      layout = timed_layouts_.emplace(content, *defined).first;
    }
    const int64_t time_ns = at.first;
    result.Update(sink->AppendRows(layout->second, {&time_ns, 1}, {}, row.second, {}));
  }
  timed_.clear();
  return result;
}

absl::Status ExpositionRows::WriteOwn(absl::Time now, RowSink* sink) {
  Sample own = std::exchange(own_, {});
  own.Add(own::kScrapeSamples, {{"source", options_.source}}, static_cast<double>(filed_));
  for (const auto& [reason, samples] : left_out_) {
    own.Add(own::kScrapeLeftOut, {{"reason", reason}, {"source", options_.source}},
            static_cast<double>(samples));
  }
  uint64_t none = 0;
  return own_rows_.Write(now, own, &own_budget_, sink, &none);
}

}  // namespace tacho::agent
