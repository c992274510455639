// What a store knows besides samples: the records of `index`, `state` and `events`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/format/bytes.h"

namespace format_page {

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Metric {
  unsigned type = 0;
  std::string name;
  std::string unit;
  std::string help;
};

struct Series {
  uint32_t metric = 0;
  std::optional<uint32_t> task;
  std::string host;
  Labels labels;
};

struct Layout {
  uint32_t attempt = 0;
  bool has_steps = false;
  std::vector<uint64_t> series;  // One a column.
  uint64_t sealed = 0;           // The journal's position up to which its entries are sealed.
};

struct Extent {
  int64_t first_time = INT64_MAX;
  int64_t last_time = INT64_MIN;
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;

  void Include(int64_t time, std::optional<int64_t> step);
  friend bool operator==(const Extent&, const Extent&) = default;
};

struct Attempt {
  Extent extent;
  std::map<std::string, std::string> attributes;
};

struct Task {
  Extent extent;
  uint32_t attempt = 0;  // The newest row's.
};

struct Event {
  std::optional<uint32_t> task;
  uint32_t attempt = 0;
  std::string host;
  int64_t time = 0;
  std::optional<int64_t> step;
  std::string kind;
  std::string message;
  std::map<std::string, std::string> fields;
};

// What `state` says of a job as a whole.
struct Totals {
  Extent extent;
  uint64_t attempts = 0;
  uint64_t tasks = 0;
  uint64_t hosts = 0;
};

struct Job {
  std::string name;
  Totals totals;
  std::map<uint32_t, Metric> metrics;
  std::map<uint64_t, Series> series;
  std::map<uint64_t, Layout> layouts;
  std::map<uint32_t, Attempt> attempts;
  std::map<std::pair<std::optional<uint32_t>, std::string>, Task> tasks;  // By task and host.
};

// Sequences from the first to the last, both included.
using SequenceRange = std::pair<uint64_t, uint64_t>;

// What `state` counts of all commits.
struct Commits {
  uint64_t commits = 0;
  uint64_t messages = 0;
  uint64_t rows = 0;
  int64_t last_time = 0;
};

struct Records {
  Commits commits;
  std::map<uint32_t, Job> jobs;                   // By id.
  std::map<uint32_t, std::vector<Event>> events;  // By job's id; 0 is no job.
  std::map<std::pair<std::string, uint64_t>, std::vector<SequenceRange>> durable;  // By agent.
};

// One record each, of the column family of that name. They come in the order of their keys, those
// of `index` first.
void ReadIndexRecord(Bytes key, Bytes value, Records* records);
void ReadStateRecord(Bytes key, Bytes value, Records* records);
void ReadEventRecord(Bytes key, Bytes value, Records* records);

}  // namespace format_page
