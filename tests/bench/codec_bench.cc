// What the column codec makes of a corpus: ns a value to encode and to decode, and bytes a value.
//
//   codec_bench [--json FILE] [--columns NAME=FILE]... [Google Benchmark's own flags]
//
// Always runs on the synthetic fleet; besides it on each file of columns, which bench_codec.py
// makes from real data:
//
//    0            8                    8 + 8n
//    | n, u64 LE  | n doubles, LE      | the next column ...
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "benchmark/benchmark.h"
#include "storage/codec/column_codec.h"
#include "tests/bench/fleet_generator.h"

namespace tacho::bench {
namespace {

using storage::ColumnCodec;
using Columns = std::vector<std::vector<double>>;

// Rows of a sealed column unless configured otherwise.
constexpr size_t kSealRows = 1024;

// Cuts a column as the sealer does.
void AddPieces(const std::vector<double>& column, Columns* pieces) {
  for (size_t at = 0; at < column.size(); at += kSealRows) {
    const auto begin = column.begin() + static_cast<ptrdiff_t>(at);
    const size_t count = std::min(kSealRows, column.size() - at);
    pieces->emplace_back(begin, begin + static_cast<ptrdiff_t>(count));
  }
}

Columns FleetPieces() {
  constexpr size_t kHosts = 4;
  Columns pieces;
  for (uint32_t index = 0; index < kHosts; ++index) {
    FleetHost host({}, index);
    Columns columns(kSeries);
    for (size_t row = 0; row < 2 * kSealRows; ++row) {
      const FleetRow values = host.NextRow();
      for (size_t i = 0; i < kSeries; ++i) columns[i].push_back(values.values[i]);
    }
    for (const auto& column : columns) AddPieces(column, &pieces);
  }
  return pieces;
}

// Empty if the file is not as drawn above.
Columns ReadPieces(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Columns pieces;
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size();) {
    uint64_t count = 0;
    std::memcpy(&count, bytes.data() + at, sizeof count);
    at += sizeof count;
    if (count > (bytes.size() - at) / sizeof(double)) return {};
    std::vector<double> column(count);
    std::memcpy(column.data(), bytes.data() + at, count * sizeof(double));
    at += count * sizeof(double);
    AddPieces(column, &pieces);
  }
  return pieces;
}

int64_t CountValues(const Columns& pieces) {
  size_t count = 0;
  for (const auto& piece : pieces) count += piece.size();
  return static_cast<int64_t>(count);
}

void Encode(benchmark::State& state, const Columns& pieces) {
  std::string bytes;
  size_t total = 0;
  for (auto _ : state) {
    total = 0;
    for (const auto& piece : pieces) {
      bytes.clear();
      ColumnCodec::EncodeValues(piece, &bytes);
      total += bytes.size();
    }
  }
  state.SetItemsProcessed(state.iterations() * CountValues(pieces));
  state.counters["bytes_per_value"] =
      static_cast<double>(total) / static_cast<double>(CountValues(pieces));
}

bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

void Decode(benchmark::State& state, const Columns& pieces) {
  std::vector<std::string> encoded(pieces.size());
  std::vector<double> values;
  for (size_t i = 0; i < pieces.size(); ++i) {
    ColumnCodec::EncodeValues(pieces[i], &encoded[i]);
    const auto status = ColumnCodec::DecodeValues(encoded[i], pieces[i].size(), &values);
    if (!status.ok() || !SameBits(values, pieces[i])) return state.SkipWithError("bits were lost");
  }
  for (auto _ : state) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      benchmark::DoNotOptimize(
          ColumnCodec::DecodeValues(encoded[i], pieces[i].size(), &values).ok());
    }
  }
  state.SetItemsProcessed(state.iterations() * CountValues(pieces));
}

std::string Figure(const std::string& id, const char* unit, double value) {
  return absl::StrFormat(R"({"id": "codec.%s", "unit": "%s", "ours": %.5g, "peers": {}})", id, unit,
                         value) +
         "\n";
}

// Prints as always, and keeps the figures. Benchmarks are named "<corpus>/<encode or decode>".
class FigureReporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      failed_ |= run.error_occurred;
      const auto rate = run.counters.find("items_per_second");
      if (run.error_occurred || rate == run.counters.end()) continue;
      const std::pair<std::string, std::string> name =
          absl::StrSplit(run.run_name.function_name, absl::MaxSplits('/', 1));
      figures_ += Figure(name.first + "." + name.second, "ns/value", 1e9 / rate->second);
      const auto bytes = run.counters.find("bytes_per_value");
      if (bytes == run.counters.end()) continue;
      figures_ += Figure(name.first + ".size", "B/value", bytes->second);
    }
  }

  const std::string& figures() const { return figures_; }
  bool failed() const { return failed_; }

 private:
  std::string figures_;
  bool failed_ = false;
};

void Register(const std::string& name, const Columns& pieces) {
  benchmark::RegisterBenchmark((name + "/encode").c_str(), Encode, std::cref(pieces));
  benchmark::RegisterBenchmark((name + "/decode").c_str(), Decode, std::cref(pieces));
}

// Takes every "--name VALUE" out of the arguments.
std::vector<std::string> TakeFlag(const std::string& name, std::vector<char*>* arguments) {
  std::vector<std::string> values;
  for (size_t i = 1; i + 1 < arguments->size();) {
    const auto at = arguments->begin() + static_cast<ptrdiff_t>(i);
    if (*at != name) {
      ++i;
      continue;
    }
    values.emplace_back(*(at + 1));
    arguments->erase(at, at + 2);
  }
  return values;
}

int Main(std::vector<char*> arguments) {
  const auto json = TakeFlag("--json", &arguments);
  std::map<std::string, Columns> corpora = {{"fleet", FleetPieces()}};
  for (const std::string& columns : TakeFlag("--columns", &arguments)) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(columns, absl::MaxSplits('=', 1));
    Columns& pieces = corpora[parts.first] = ReadPieces(parts.second);
    if (pieces.empty()) {
      absl::FPrintF(stderr, "--columns %s: not a file of columns\n", columns);
      return 2;
    }
  }
  for (const auto& [name, pieces] : corpora) Register(name, pieces);
  int argc = static_cast<int>(arguments.size());
  benchmark::Initialize(&argc, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(argc, arguments.data())) return 2;
  FigureReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  if (!json.empty()) {
    std::ofstream out(json.back());
    out << reporter.figures();
    if (!out.flush()) return 1;
  }
  return reporter.failed() ? 1 : 0;
}

}  // namespace
}  // namespace tacho::bench

int main(int argc, char** argv) {
  return tacho::bench::Main(std::vector<char*>(argv, argv + argc));
}
