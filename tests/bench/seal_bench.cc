// What becomes of rows on disk, with the storage library alone: bytes a sample by what they are
// for, bytes written for each byte stored, and how long commits take while columns are sealed.
//
//   seal_bench --hosts 200 --rows 360 ...     a fleet, 88 series a host, a row a second
//   seal_bench --shape jobs --hosts 1000      short jobs: 20 series, --rows of each, one host a job
//
// Seconds are simulated: a store clock that follows the rows decides what is old. Every
// --seal_every rows whatever is open is sealed, as its age would do; 0 leaves it to --seal_rows.
// --merge 1 merges after each such sealing what is due then, and everything at the end.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "rocksdb/db.h"
#include "storage/codec/bytes.h"
#include "storage/codec/frame.h"
#include "storage/codec/keys.h"
#include "storage/store.h"
#include "tests/bench/bench_flags.h"
#include "tests/bench/fleet_generator.h"
#include "tests/bench/load_report.h"

namespace tacho::bench {
namespace {

using storage::LayoutDefinition;
using storage::LayoutPtr;
using storage::Store;
using storage::StoreOptions;
using storage::StoreStats;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kStartNs = 1'700'006'400 * kSecondNs;  // Midnight.

struct Plan {
  std::string path;
  bool short_jobs = false;
  int64_t hosts = 0;
  int64_t rows = 0;
  int64_t batch = 0;
  int64_t seal_every = 0;
  int64_t period = 0;  // Simulated seconds from row to row.
  bool merge = false;
  StoreOptions store;
};

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "seal_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Store> OpenStore(const StoreOptions& options) {
  auto store = Store::Open(options);
  if (!store.ok()) Die(store.status());
  return *std::move(store);
}

void CloseStore(std::unique_ptr<Store> store) {
  if (absl::Status status = store->Close(); !status.ok()) Die(status);
}

// One source of rows: a host and its layout.
struct Sender {
  Sender(const FleetOptions& options, uint32_t index) : host(options, index) {}

  FleetHost host;
  LayoutPtr layout;
  std::vector<int64_t> times;
  std::vector<int64_t> steps;
  std::vector<double> values;

  void Fill(int64_t first, int64_t count, int64_t period) {
    times.clear();
    steps.clear();
    values.clear();
    for (int64_t i = 0; i < count; ++i) {
      const FleetRow row = host.NextRow();
      // The generator's seconds, a period apart.
      const int64_t jitter = (row.time_unix_ns - kStartNs) % kSecondNs;
      times.push_back(kStartNs + (first + i) * period * kSecondNs + jitter);
      steps.push_back(row.step);
      const auto width = static_cast<ptrdiff_t>(layout->series.size());
      values.insert(values.end(), row.values.begin(), row.values.begin() + width);
    }
  }
};

LayoutDefinition Define(const FleetHost& host, uint32_t index, bool short_job) {
  LayoutDefinition definition;
  definition.source = {host.job(), host.task(), 0, host.host()};
  if (short_job) definition.source.job = absl::StrCat("job-", index);
  definition.has_steps = true;
  for (const FleetSeries& column : FleetColumns().first(short_job ? 20 : kSeries)) {
    storage::SeriesDefinition series;
    series.metric = {column.metric->name, storage::MetricType::kGauge, column.metric->unit,
                     column.metric->help};
    if (column.chip >= 0) series.labels = {{"chip", absl::StrCat(column.chip)}};
    definition.series.push_back(std::move(series));
  }
  return definition;
}

// Only files with this extension, if it is given.
uint64_t DirectoryBytes(const std::string& path, const char* extension = nullptr) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(path)) {
    const bool counts = extension == nullptr || file.path().extension() == extension;
    if (file.is_regular_file() && counts) bytes += file.file_size();
  }
  return bytes;
}

// Keys and values as they lie in the column families, before RocksDB packs them; and its tables.
struct Contents {
  uint64_t time_columns = 0, time_bytes = 0;
  uint64_t value_columns = 0, value_keys = 0, value_headers = 0, value_bytes = 0;
  uint64_t partition_tables = 0, index_tables = 0, other_tables = 0;
};

Contents ReadContents(const std::string& path) {
  std::vector<std::string> names;
  const rocksdb::DBOptions options;
  rocksdb::DB::ListColumnFamilies(options, path, &names).PermitUncheckedError();
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles, &opened);
  if (!status.ok()) Die(absl::UnavailableError(status.ToString()));
  const std::unique_ptr<rocksdb::DB> db(opened);
  Contents contents;
  for (size_t i = 0; i < handles.size(); ++i) {
    uint64_t tables = 0;
    db->GetIntProperty(handles[i], rocksdb::DB::Properties::kTotalSstFilesSize, &tables);
    const auto day = storage::ParsePartitionName(names[i]);
    (day                   ? contents.partition_tables
     : names[i] == "index" ? contents.index_tables
                           : contents.other_tables) += tables;
    if (!day) continue;
    const std::unique_ptr<rocksdb::Iterator> it(
        db->NewIterator(rocksdb::ReadOptions(), handles[i]));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      if (it->key().starts_with("T")) {
        ++contents.time_columns;
        contents.time_bytes += it->key().size() + it->value().size();
        continue;
      }
      const absl::string_view value(it->value().data(), it->value().size());
      const auto header = storage::DecodeValueColumnHeader(0, value);
      if (!header.ok()) Die(header.status());
      ++contents.value_columns;
      contents.value_keys += it->key().size();
      contents.value_headers += value.size() - header->encoded.size();
      contents.value_bytes += header->encoded.size();
    }
  }
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  return contents;
}

// Returns the bound, in milliseconds, below which this share of commits took.
double CommitMs(const StoreStats& stats, double share) {
  uint64_t seen = 0;
  for (size_t i = 0; i < std::size(stats.commit_latency_us_buckets); ++i) {
    seen += stats.commit_latency_us_buckets[i];
    if (static_cast<double>(seen) >= share * static_cast<double>(stats.commits)) {
      return static_cast<double>(uint64_t{1} << i) / 1e3;
    }
  }
  return 0;
}

void MergeFrames(Store* store) {
  if (absl::Status status = store->MergeFrames(); !status.ok()) Die(status);
}

// Appends everything; returns the samples.
uint64_t Load(const Plan& plan, Store* store, absl::Time* now) {
  std::vector<Sender> senders;
  for (int64_t i = 0; i < plan.hosts; ++i) {
    const auto index = static_cast<uint32_t>(i);
    Sender& sender = senders.emplace_back(FleetOptions{.start_unix_ns = kStartNs}, index);
    auto made = store->RegisterLayout(Define(sender.host, index, plan.short_jobs));
    if (!made.ok()) Die(made.status());
    sender.layout = made->layout;
  }
  std::atomic<int64_t> waiting = 0;
  uint64_t samples = 0;
  uint64_t sequence = 0;
  for (int64_t row = 0; row < plan.rows;) {
    int64_t count = std::min(plan.batch, plan.rows - row);
    if (plan.seal_every > 0) count = std::min(count, plan.seal_every - row % plan.seal_every);
    for (size_t i = 0; i < senders.size(); ++i) {
      Sender& sender = senders[i];
      sender.Fill(row, count, plan.period);
      samples += sender.values.size();
      ++waiting;
      store->AppendRows({absl::StrCat("agent-", i), 1, sequence + 1}, sender.layout,
                        {sender.times, sender.steps, sender.values},
                        [&](const absl::Status& status) {
                          if (!status.ok()) Die(status);
                          --waiting;
                        });
    }
    ++sequence;
    row += count;
    *now = absl::FromUnixNanos(kStartNs + row * plan.period * kSecondNs);
    while (waiting > 0) absl::SleepFor(absl::Milliseconds(1));
    if (plan.seal_every > 0 && row % plan.seal_every == 0) {
      if (absl::Status status = store->Seal(); !status.ok()) Die(status);
      if (plan.merge) MergeFrames(store);
    }
  }
  return samples;
}

void Report(const char* what, double value, const char* unit) {
  std::printf("%-34s %12.4f %s\n", what, value, unit);
}

void Run(Plan plan) {
  absl::Time now = absl::FromUnixNanos(kStartNs);
  plan.store.path = plan.path;
  plan.store.now = [&now] { return now; };
  plan.store.log = [](absl::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
  std::filesystem::remove_all(plan.path);
  auto store = OpenStore(plan.store);
  const uint64_t samples = Load(plan, store.get(), &now);
  const double loaded_cpu = OwnCpuSeconds();
  if (plan.merge) {
    now += absl::Hours(48);
    MergeFrames(store.get());
  }
  const StoreStats stats = store->Stats();
  const uint64_t tables_before = DirectoryBytes(plan.path, ".sst");
  CloseStore(std::move(store));
  const uint64_t settled = DirectoryBytes(plan.path);
  const double closed_cpu = OwnCpuSeconds();
  CloseStore(OpenStore(plan.store));  // RocksDB writes out its log and forgets it.
  const auto per_sample = [&](uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(samples);
  };
  const Contents contents = ReadContents(plan.path);
  Report("samples", static_cast<double>(samples), "");
  Report("time columns", per_sample(contents.time_bytes), "B/sample before RocksDB");
  Report("value columns: keys", per_sample(contents.value_keys), "B/sample before RocksDB");
  Report("value columns: headers", per_sample(contents.value_headers), "B/sample before RocksDB");
  Report("value columns: values", per_sample(contents.value_bytes), "B/sample before RocksDB");
  Report("a header",
         static_cast<double>(contents.value_headers) /
             static_cast<double>(std::max<uint64_t>(1, contents.value_columns)),
         "B");
  Report("frames", static_cast<double>(contents.time_columns), "");
  Report("value columns", static_cast<double>(contents.value_columns), "");
  Report("tables of days", per_sample(contents.partition_tables), "B/sample");
  Report("tables of the index", per_sample(contents.index_tables), "B/sample");
  Report("other tables", per_sample(contents.other_tables), "B/sample");
  Report("directory", per_sample(DirectoryBytes(plan.path)), "B/sample");
  Report("CPU to the last ack", loaded_cpu * 1e6 / static_cast<double>(samples), "s/Msample");
  Report("CPU until closed", closed_cpu * 1e6 / static_cast<double>(samples), "s/Msample");
  Report("frames merged", static_cast<double>(stats.frames_merged), "");
  Report("written: log", per_sample(stats.log_bytes_written), "B/sample");
  Report("written: merged columns", per_sample(stats.merge_bytes), "B/sample, in the log too");
  Report("written: compactions", per_sample(stats.compaction_bytes_written), "B/sample");
  // Closing writes what is still in memory: about what the directory then holds more.
  const uint64_t tables = stats.flush_bytes_written + stats.compaction_bytes_written + settled -
                          std::min(settled, tables_before);
  Report("written: tables", per_sample(tables), "B/sample");
  Report("written for each byte stored",
         static_cast<double>(stats.log_bytes_written + tables) / static_cast<double>(settled), "");
  Report("written for 16 bytes of sample", per_sample(stats.log_bytes_written + tables) / 16, "");
  Report("commits", static_cast<double>(stats.commits), "");
  Report("commit p50 below", CommitMs(stats, 0.5), "ms");
  Report("commit p99 below", CommitMs(stats, 0.99), "ms");
  Report("commit max below", CommitMs(stats, 1), "ms");
  std::filesystem::remove_all(plan.path);
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags = {
      {"path", "/tmp/tacho_seal_bench"},
      {"shape", "fleet"},
      {"hosts", "200"},
      {"rows", "360"},
      {"merge", "0"},
      {"batch", "10"},
      {"seal_rows", "1024"},
      {"seal_every", "0"},
      {"period", "1"},
  };
  tacho::bench::ParseFlags(argc, argv, &flags);
  tacho::bench::Plan plan;
  plan.path = flags["path"];
  plan.short_jobs = flags["shape"] == "jobs";
  plan.hosts = tacho::bench::NumberFlag(flags, "hosts");
  plan.rows = tacho::bench::NumberFlag(flags, "rows");
  plan.batch = tacho::bench::NumberFlag(flags, "batch");
  plan.seal_every = tacho::bench::NumberFlag(flags, "seal_every");
  plan.period = tacho::bench::NumberFlag(flags, "period");
  plan.merge = tacho::bench::NumberFlag(flags, "merge") != 0;
  plan.store.background = !plan.merge && plan.seal_every == 0;
  plan.store.seal_rows = static_cast<uint32_t>(tacho::bench::NumberFlag(flags, "seal_rows"));
  plan.store.retention = absl::ZeroDuration();
  tacho::bench::Run(std::move(plan));
}
