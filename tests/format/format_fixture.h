// A store, a model of what was written to it, and a comparison of the model with what two readers
// say: the store's own, and the one that knows only docs/storage_format.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/format/standalone_reader.h"
#include "tests/storage/store_fixture.h"

namespace tacho::storage {

// What identifies a series: job, metric, task, host, labels.
using SeriesName =
    std::tuple<std::string, std::string, std::optional<uint32_t>, std::string, Labels>;
using SampleBits = std::map<format_page::SampleKey, uint64_t>;

struct Rows {
  std::vector<int64_t> times;
  std::vector<int64_t> steps;                // None, or one a row.
  std::vector<std::vector<double>> columns;  // Each of as many values as there are rows.
};

class FormatFixture : public StoreFixture {
 protected:
  // Appends the rows and remembers them.
  void Write(const LayoutDefinition& definition, const Rows& rows);
  void WriteEvent(const Event& event);
  void WriteAttributes(const Attributes& attributes);

  // Both readers must say what was written, whatever is sealed by now.
  void Compare();

  // What the stand-alone reader has met so far, over all comparisons.
  std::map<std::string, uint64_t> met_;

 private:
  struct JobModel {
    std::map<uint32_t, format_page::Attempt> attempts;
    std::map<std::pair<std::optional<uint32_t>, std::string>, format_page::Task> tasks;
    std::map<std::string, Metric> metrics;
    std::vector<Event> events;
  };

  void CompareSamples(const format_page::Contents& contents);
  void CompareOwnReader();
  void CompareJob(const std::string& name, const JobModel& model, uint32_t id,
                  const format_page::Contents& contents);

  std::map<SeriesName, SampleBits> samples_;
  std::map<std::string, JobModel> jobs_;
};

}  // namespace tacho::storage
