// A store in memory for tests of what is built on storage::Store: series and samples are given, and
// read back in blocks as small as the test wants them.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "storage/store.h"
#include "tests/support/series_maker.h"

namespace tacho::server {

struct FakeSample {
  int64_t time_ns = 0;
  int64_t step = storage::kNoStep;
  uint32_t attempt = 0;
  double value = 0;
};

inline storage::Metric MetricNamed(std::string name,
                                   storage::MetricType type = storage::MetricType::kGauge,
                                   std::string unit = "") {
  return {std::move(name), type, std::move(unit), ""};
}

// Reading only. Samples are returned in the order of the contract.
class FakeStore : public storage::Store {
 public:
  size_t block_size = 3;           // Samples of a block.
  absl::Status read_error;         // Of every reader's second block.
  std::function<void()> on_block;  // Called before each block.
  storage::StoreStats stats;

  // Adds a series, or finds it.
  storage::SeriesPtr AddSeries(std::string job, storage::Metric metric,
                               std::optional<uint32_t> task, std::string host,
                               storage::Labels labels = {}) {
    const storage::Series ids = {.id = entries_.size() + 1,
                                 .job_id = IdOf(&jobs_, job),
                                 .metric_id = IdOf(&metrics_, job + "\n" + metric.name)};
    auto series = storage::MakeSeries(
        ids, std::move(metric), {.job = std::move(job), .task = task, .host = std::move(host)},
        std::move(labels));
    entries_.push_back({series, {}});
    return series;
  }
  void AddSamples(const storage::SeriesPtr& series, std::vector<FakeSample> samples) {
    auto& all = entries_[series->id - 1].samples;
    all.insert(all.end(), samples.begin(), samples.end());
    const auto before = [](const FakeSample& a, const FakeSample& b) {
      return std::tie(a.time_ns, a.attempt, a.step) < std::tie(b.time_ns, b.attempt, b.step);
    };
    if (!std::is_sorted(all.begin(), all.end(), before)) std::sort(all.begin(), all.end(), before);
  }
  void AddEvent(storage::Event event) { events_.push_back(std::move(event)); }
  // A row that VisitLatestRows() shows, instead of the one before of the same series and attempt.
  void AddLatestRow(std::vector<storage::SeriesPtr> series, uint32_t attempt, int64_t time_ns,
                    int64_t step, absl::Time received, std::vector<double> values) {
    storage::Layout layout;
    layout.id = LayoutIdOf(attempt, series);
    layout.attempt = attempt;
    layout.has_steps = step != storage::kNoStep;
    std::erase_if(rows_, [&](const Row& row) { return row.layout->id == layout.id; });
    rows_.push_back({storage::MakeLayout(std::move(layout), std::move(series)), time_ns, step,
                     received, std::move(values)});
  }

  // As when a job leaves memory.
  void RemoveLatestRows(const std::string& job) {
    std::erase_if(rows_,
                  [&](const Row& row) { return row.layout->series.front()->source->job == job; });
  }

  std::vector<storage::JobSummary> Jobs() const override {
    std::vector<storage::JobSummary> jobs;
    for (const std::string& name : jobs_) jobs.push_back(FindJob(name)->summary);
    std::sort(jobs.begin(), jobs.end(), [](auto& a, auto& b) { return a.name < b.name; });
    return jobs;
  }
  std::optional<storage::JobDetail> FindJob(absl::string_view job) const override {
    storage::JobDetail detail;
    std::map<uint32_t, storage::Extent> attempts;
    for (const Entry& entry : entries_) {
      if (entry.series->source->job != job) continue;
      ++detail.summary.series;
      for (const FakeSample& sample : entry.samples) {
        attempts[sample.attempt].Include(sample.time_ns);
        attempts[sample.attempt].IncludeStep(sample.step);
      }
    }
    if (detail.summary.series == 0) return std::nullopt;
    detail.summary.name = std::string(job);
    for (const auto& [attempt, extent] : attempts) {
      detail.summary.extent.Include(extent);
      detail.attempts.push_back({attempt, extent, {}});
    }
    detail.summary.attempts = static_cast<uint32_t>(attempts.size());
    return detail;
  }
  absl::StatusOr<std::vector<storage::AttemptInfo>> Attempts(absl::string_view job) const override {
    const auto detail = FindJob(job);
    return detail ? detail->attempts : std::vector<storage::AttemptInfo>();
  }
  // Every job has what a test says here.
  storage::JobEntities entities;
  std::vector<storage::MetricUse> metrics;
  storage::JobOutline outline;
  absl::StatusOr<storage::JobEntities> Entities(absl::string_view) const override {
    return entities;
  }
  absl::StatusOr<std::vector<storage::MetricUse>> Metrics(absl::string_view) const override {
    return metrics;
  }
  absl::StatusOr<storage::JobOutline> Outline(absl::string_view job, bool) const override {
    storage::JobOutline found = outline;
    const auto attempts = FindJob(job);
    if (attempts && !attempts->attempts.empty()) found.attempt = attempts->attempts.back().attempt;
    return found;
  }
  absl::StatusOr<std::vector<storage::SeriesPtr>> FindSeries(const storage::Selector& selector,
                                                             size_t limit) const override {
    std::vector<storage::SeriesPtr> found;
    for (const Entry& entry : entries_) {
      const storage::Series& series = *entry.series;
      const bool metric =
          selector.metrics.empty() ||
          std::count(selector.metrics.begin(), selector.metrics.end(), series.metric->name) > 0;
      const bool labels = std::all_of(selector.matchers.begin(), selector.matchers.end(),
                                      [&](const auto& matcher) { return matcher.Matches(series); });
      if (series.source->job == selector.job && metric && labels) found.push_back(entry.series);
    }
    if (found.size() > limit) return absl::ResourceExhaustedError("limit");
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::tie(a->metric->name, a->source->task, a->source->host, a->labels->labels) <
             std::tie(b->metric->name, b->source->task, b->source->host, b->labels->labels);
    });
    return found;
  }
  std::unique_ptr<storage::ReadView> OpenView(std::vector<storage::SeriesPtr>) const override {
    class View final : public storage::ReadView {
     public:
      explicit View(const FakeStore& store) : store_(store) {}
      std::unique_ptr<storage::SeriesReader> Read(const storage::SeriesPtr& series,
                                                  const storage::ReadOptions& read) override {
        return store_.ReaderOf(series, read);
      }

     private:
      const FakeStore& store_;
    };
    return std::make_unique<View>(*this);
  }
  std::unique_ptr<storage::JobView> OpenJobView(absl::string_view job) const override {
    class View final : public storage::JobView {
     public:
      View(const FakeStore& store, absl::string_view job) : store_(store), job_(job) {}
      std::unique_ptr<storage::SeriesReader> Read(const storage::SeriesPtr& series,
                                                  const storage::ReadOptions& read) override {
        return store_.ReaderOf(series, read);
      }
      absl::StatusOr<std::vector<storage::Event>> Events(int64_t begin_ns,
                                                         int64_t end_ns) const override {
        return store_.Events(job_, begin_ns, end_ns);
      }

     private:
      const FakeStore& store_;
      const std::string job_;
    };
    return std::make_unique<View>(*this, job);
  }
  std::unique_ptr<storage::Subscription> Subscribe(
      storage::SubscribeOptions options, std::unique_ptr<storage::JobView>* view) const override {
    if (view != nullptr) *view = OpenJobView(options.job);
    return feed.Subscribe(std::move(options));
  }
  mutable storage::ChangeFeed feed;  // Tests say what is committed.
  std::unique_ptr<storage::SeriesReader> ReaderOf(const storage::SeriesPtr& series,
                                                  const storage::ReadOptions& read) const {
    std::vector<FakeSample> samples;
    for (const FakeSample& sample : entries_[series->id - 1].samples) {
      const bool stepped = read.first_step.has_value() || read.last_step.has_value();
      if (sample.time_ns < read.begin_ns) continue;
      if (sample.time_ns >= read.end_ns && read.end_ns != INT64_MAX) continue;
      if (stepped && sample.step == storage::kNoStep) continue;
      if (read.first_step.has_value() && sample.step < *read.first_step) continue;
      if (read.last_step.has_value() && sample.step > *read.last_step) continue;
      if (read.attempt.has_value() && sample.attempt != *read.attempt) continue;
      samples.push_back(sample);
    }
    return std::make_unique<Reader>(*this, std::move(samples));
  }
  absl::StatusOr<std::vector<std::optional<storage::LatestSample>>> LatestOf(
      const std::vector<storage::SeriesPtr>& series) const override {
    std::vector<std::optional<storage::LatestSample>> latest;
    for (const storage::SeriesPtr& one : series) {
      latest.emplace_back();
      const auto& samples = entries_[one->id - 1].samples;
      if (samples.empty()) continue;
      const FakeSample& last = samples.back();
      latest.back() = storage::LatestSample{one, last.time_ns, last.step, last.attempt, last.value};
    }
    return latest;
  }
  void VisitLatestRows(const std::function<void(const storage::LatestRow&)>& visit) const override {
    for (const Row& row : rows_) {
      visit({row.layout, row.time_ns, row.step, row.received, row.values, {}, {}});
    }
  }
  absl::Status VisitEvents(absl::string_view job, int64_t begin_ns, int64_t end_ns,
                           EventOrder order,
                           absl::FunctionRef<bool(storage::Event)> visit) const override {
    std::vector<storage::Event> found;
    for (const storage::Event& event : events_) {
      const bool early = event.time_ns < end_ns || end_ns == INT64_MAX;
      if (event.source.job == job && event.time_ns >= begin_ns && early) found.push_back(event);
    }
    if (order == EventOrder::kNewestFirst) std::reverse(found.begin(), found.end());
    for (storage::Event& event : found) {
      if (!visit(std::move(event))) break;
    }
    return absl::OkStatus();
  }
  absl::Status Checkpoint(const std::string&) override { return absl::OkStatus(); }
  storage::StoreStats Stats() const override { return stats; }
  void SetLimits(std::shared_ptr<const storage::LimitPolicy> limits) override {
    limits_ = std::move(limits);
  }
  std::shared_ptr<const storage::LimitPolicy> limits() const override { return limits_; }
  bool HasRoomForJob(absl::string_view) const override { return true; }
  storage::CardinalityReport cardinality;  // The answer, for whatever job.
  absl::StatusOr<storage::CardinalityReport> Cardinality(absl::string_view job,
                                                         size_t) const override {
    if (!job.empty() && !FindJob(job).has_value()) return absl::NotFoundError("no such job");
    return cardinality;
  }

  absl::Status Close() override { return absl::OkStatus(); }
  absl::Status Seal() override { return absl::OkStatus(); }
  absl::Status MergeFrames() override { return absl::OkStatus(); }
  absl::Status EnforceRetention() override { return absl::OkStatus(); }
  absl::Status UnloadIdleJobs() override { return absl::OkStatus(); }
  absl::StatusOr<storage::LayoutPtr> FindLayout(storage::JobId, storage::LayoutId) const override {
    return absl::UnimplementedError("reading only");
  }
  absl::StatusOr<Registration> RegisterLayout(const storage::LayoutDefinition&) override {
    return absl::UnimplementedError("reads only");
  }
  void AppendRows(const storage::Origin&, const storage::LayoutPtr&, const storage::RowsView&,
                  storage::AppendDone) override {}
  void AppendEvent(const storage::Origin&, const storage::Event&, storage::AppendDone) override {}
  void AppendAttributes(const storage::Origin&, const storage::Attributes&,
                        storage::AppendDone) override {}
  void AppendGap(const storage::Origin&, storage::SequenceRange, uint64_t, absl::string_view,
                 storage::AppendDone) override {}
  storage::SequenceSet DurableSequences(absl::string_view, uint64_t) const override { return {}; }

 private:
  struct Entry {
    storage::SeriesPtr series;
    std::vector<FakeSample> samples;
  };
  struct Row {
    storage::LayoutPtr layout;
    int64_t time_ns;
    int64_t step;
    absl::Time received;
    std::vector<double> values;
  };
  class Reader : public storage::SeriesReader {
   public:
    Reader(const FakeStore& store, std::vector<FakeSample> samples)
        : store_(store), samples_(std::move(samples)) {}
    absl::StatusOr<bool> Next(const storage::Want&, storage::Chunk* chunk) override {
      if (store_.on_block) store_.on_block();
      if (next_ > 0 && !store_.read_error.ok()) return store_.read_error;
      storage::SampleBlock* const block = chunk->block();
      block->clear();
      for (; next_ < samples_.size() && block->values.size() < store_.block_size; ++next_) {
        block->times.push_back(samples_[next_].time_ns);
        block->steps.push_back(samples_[next_].step);
        block->attempts.push_back(samples_[next_].attempt);
        block->values.push_back(samples_[next_].value);
      }
      chunk->ShowBlock();
      return !block->values.empty();
    }
    absl::StatusOr<std::optional<storage::SampleEnds>> FindEnds() override {
      if (next_ == samples_.size()) return std::nullopt;
      const auto end = [](const FakeSample& sample) {
        return storage::SampleEnds::End{sample.time_ns, sample.step, sample.attempt};
      };
      return storage::SampleEnds{end(samples_[next_]), end(samples_.back())};
    }

   private:
    const FakeStore& store_;
    const std::vector<FakeSample> samples_;
    size_t next_ = 0;
  };

  // The same for the same series and attempt.
  storage::LayoutId LayoutIdOf(uint32_t attempt, const std::vector<storage::SeriesPtr>& series) {
    std::vector<storage::SeriesId> key = {attempt};
    for (const auto& one : series) key.push_back(one->id);
    return layouts_.try_emplace(std::move(key), layouts_.size() + 1).first->second;
  }
  static uint32_t IdOf(std::vector<std::string>* names, const std::string& name) {
    auto it = std::find(names->begin(), names->end(), name);
    if (it == names->end()) it = names->insert(names->end(), name);
    return static_cast<uint32_t>(it - names->begin()) + 1;
  }

  std::vector<Entry> entries_;
  std::vector<std::string> jobs_;
  std::vector<std::string> metrics_;
  std::vector<storage::Event> events_;
  std::vector<Row> rows_;
  std::map<std::vector<storage::SeriesId>, storage::LayoutId> layouts_;
  std::shared_ptr<const storage::LimitPolicy> limits_ = storage::LimitPolicy::Default();
};

}  // namespace tacho::server
