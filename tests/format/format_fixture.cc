#include "tests/format/format_fixture.h"

#include <algorithm>
#include <bit>
#include <set>

#include "gmock/gmock.h"
#include "proto/base/stale_marker.h"

namespace tacho::storage {
namespace {

using ::testing::IsEmpty;

SeriesName NameOf(const Source& source, const SeriesDefinition& series) {
  return {source.job, series.metric.name, source.task, source.host, series.labels};
}

std::string Text(const SeriesName& name) {
  return std::get<0>(name) + " " + std::get<1>(name) + " " + std::get<3>(name);
}

// The first sample in which they differ; "" if they are the same.
std::string Difference(const SampleBits& written, const SampleBits& read) {
  const auto text = [](const SampleBits& all, SampleBits::const_iterator sample) {
    if (sample == all.end()) return std::string("nothing");
    return "time " + std::to_string(sample->first.time) + " attempt " +
           std::to_string(sample->first.attempt) + " step " + std::to_string(sample->first.step) +
           " bits " + std::to_string(sample->second);
  };
  const auto [a, b] = std::mismatch(written.begin(), written.end(), read.begin(), read.end());
  if (a == written.end() && b == read.end()) return "";
  return "written: " + text(written, a) + ", read: " + text(read, b);
}

}  // namespace

void FormatFixture::Write(const LayoutDefinition& definition, const Rows& rows) {
  const size_t width = rows.columns.size();
  ASSERT_EQ(definition.series.size(), width);
  const Source& source = definition.source;
  JobModel& job = jobs_[source.job];
  for (const SeriesDefinition& series : definition.series) {
    job.metrics.try_emplace(series.metric.name, series.metric);
  }
  std::vector<double> values(rows.times.size() * width);
  for (size_t column = 0; column < width; ++column) {
    SampleBits& samples = samples_[NameOf(source, definition.series[column])];
    ASSERT_EQ(rows.columns[column].size(), rows.times.size());
    for (size_t row = 0; row < rows.times.size(); ++row) {
      values[row * width + column] = rows.columns[column][row];
      const uint64_t bits = std::bit_cast<uint64_t>(rows.columns[column][row]);
      if (bits == kStaleMarkerBits) continue;
      const int64_t step = rows.steps.empty() ? kNoStep : rows.steps[row];
      samples[{rows.times[row], source.attempt, step}] = bits;
    }
  }
  for (size_t row = 0; row < rows.times.size(); ++row) {
    std::optional<int64_t> step;
    if (!rows.steps.empty() && rows.steps[row] != kNoStep) step = rows.steps[row];
    job.attempts[source.attempt].extent.Include(rows.times[row], step);
    format_page::Task& task = job.tasks[{source.task, source.host}];
    if (rows.times[row] >= task.extent.last_time) task.attempt = source.attempt;
    task.extent.Include(rows.times[row], step);
  }
  const LayoutPtr layout = Register(definition);
  ASSERT_NE(layout, nullptr);
  ASSERT_TRUE(Append(layout, rows.times, rows.steps, values).ok());
}

void FormatFixture::WriteEvent(const Event& event) {
  ASSERT_TRUE(Wait([&](AppendDone done) { store_->AppendEvent({}, event, std::move(done)); }).ok());
  jobs_[event.source.job].events.push_back(event);
}

void FormatFixture::WriteAttributes(const Attributes& attributes) {
  ASSERT_TRUE(Wait([&](AppendDone done) {
                store_->AppendAttributes({}, attributes, std::move(done));
              }).ok());
  auto& known = jobs_[attributes.job].attempts[attributes.attempt].attributes;
  for (const auto& [name, value] : attributes.values) {
    if (value.empty()) {
      known.erase(name);
    } else {
      known[name] = value;
    }
  }
}

void FormatFixture::Compare() {
  const format_page::Contents contents = format_page::ReadStore(options_.path, options_.env);
  ASSERT_THAT(contents.findings.errors, IsEmpty());
  for (const auto& [form, times] : contents.findings.met) met_[form] += times;
  CompareSamples(contents);
  CompareOwnReader();
  EXPECT_EQ(contents.records.jobs.size(), jobs_.size());
  for (const auto& [id, job] : contents.records.jobs) {
    const auto model = jobs_.find(job.name);
    ASSERT_NE(model, jobs_.end()) << job.name;
    CompareJob(job.name, model->second, id, contents);
  }
}

void FormatFixture::CompareSamples(const format_page::Contents& contents) {
  std::map<SeriesName, SampleBits> read;
  for (const auto& [job_id, job] : contents.records.jobs) {
    for (const auto& [id, series] : job.series) {
      SampleBits& samples = read[{job.name, job.metrics.at(series.metric).name, series.task,
                                  series.host, series.labels}];
      EXPECT_THAT(samples, IsEmpty()) << "the same series twice";
      const auto found = contents.samples.find(id);
      if (found == contents.samples.end()) continue;
      for (const auto& [key, sample] : found->second) samples[key] = sample.bits;
    }
  }
  EXPECT_EQ(read.size(), samples_.size());
  for (const auto& [name, samples] : samples_) {
    EXPECT_EQ(Difference(samples, read[name]), "") << Text(name);
  }
}

void FormatFixture::CompareOwnReader() {
  for (const auto& [job, model] : jobs_) {
    const auto all = store_->FindSeries({.job = job}, 100'000);
    ASSERT_TRUE(all.ok()) << all.status();
    for (const SeriesPtr& series : *all) {
      Labels labels;
      for (const auto& [name, value] : *series->labels) labels.emplace_back(name, value);
      const SeriesName name = {job, series->metric->name, series->source->task,
                               series->source->host, labels};
      const SampleBlock block = ReadAll(series);
      SampleBits samples;
      for (size_t i = 0; i < block.size(); ++i) {
        samples[{block.times[i], block.attempts[i], block.steps[i]}] =
            std::bit_cast<uint64_t>(block.values[i]);
      }
      EXPECT_EQ(samples.size(), block.size());
      EXPECT_EQ(Difference(samples_[name], samples), "") << "the store itself: " << Text(name);
    }
  }
}

void FormatFixture::CompareJob(const std::string& name, const JobModel& model, uint32_t id,
                               const format_page::Contents& contents) {
  const format_page::Job& job = contents.records.jobs.at(id);
  format_page::Extent extent;
  EXPECT_EQ(job.attempts.size(), model.attempts.size()) << name;
  for (const auto& [number, attempt] : model.attempts) {
    ASSERT_TRUE(job.attempts.contains(number)) << name;
    EXPECT_EQ(job.attempts.at(number).extent, attempt.extent) << name << " attempt " << number;
    EXPECT_EQ(job.attempts.at(number).attributes, attempt.attributes) << name;
    if (attempt.extent.first_time > attempt.extent.last_time) continue;
    extent.Include(attempt.extent.first_time, attempt.extent.first_step);
    extent.Include(attempt.extent.last_time, attempt.extent.last_step);
  }
  EXPECT_EQ(job.totals.extent, extent) << name;
  std::set<uint32_t> numbers;
  std::set<std::string> hosts;
  EXPECT_EQ(job.tasks.size(), model.tasks.size()) << name;
  for (const auto& [source, task] : model.tasks) {
    ASSERT_TRUE(job.tasks.contains(source)) << name;
    EXPECT_EQ(job.tasks.at(source).extent, task.extent) << name << " " << source.second;
    EXPECT_EQ(job.tasks.at(source).attempt, task.attempt) << name << " " << source.second;
    if (source.first.has_value()) numbers.insert(*source.first);
    hosts.insert(source.second);
  }
  const std::optional<JobDetail> own = store_->FindJob(name);
  ASSERT_TRUE(own.has_value()) << name;
  EXPECT_EQ(own->summary.extent.first_time_ns, extent.first_time) << name;
  EXPECT_EQ(own->summary.extent.last_time_ns, extent.last_time) << name;
  EXPECT_EQ(own->summary.extent.first_step, extent.first_step) << name;
  EXPECT_EQ(own->summary.extent.last_step, extent.last_step) << name;
  EXPECT_EQ(own->summary.attempts, model.attempts.size()) << name;
  // The totals are those of what is sealed; then they are of everything.
  if (store_->Stats().open_rows == 0) {
    EXPECT_EQ(job.totals.attempts, model.attempts.size()) << name;
    EXPECT_EQ(job.totals.tasks, numbers.size()) << name;
    EXPECT_EQ(job.totals.hosts, hosts.size()) << name;
  }

  EXPECT_EQ(job.metrics.size(), model.metrics.size()) << name;
  for (const auto& [number, metric] : job.metrics) {
    ASSERT_TRUE(model.metrics.contains(metric.name)) << metric.name;
    const Metric read = {metric.name, static_cast<MetricType>(metric.type), metric.unit,
                         metric.help};
    EXPECT_EQ(read, model.metrics.at(metric.name)) << metric.name;
  }

  std::vector<Event> events;
  if (const auto found = contents.records.events.find(id); found != contents.records.events.end()) {
    for (const format_page::Event& event : found->second) {
      events.push_back({{name, event.task, event.attempt, event.host},
                        event.time,
                        event.step,
                        event.kind,
                        event.message,
                        event.fields});
    }
  }
  std::vector<Event> expected = model.events;
  std::stable_sort(expected.begin(), expected.end(),
                   [](const Event& a, const Event& b) { return a.time_ns < b.time_ns; });
  EXPECT_TRUE(events == expected) << name << ": events";
}

}  // namespace tacho::storage
