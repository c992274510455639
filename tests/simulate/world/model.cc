#include "tests/simulate/world/model.h"

#include <bit>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/check.h"

namespace tacho::simulate {
namespace {

std::string NameOf(const Model::Source& source, uint64_t number) {
  return absl::StrCat(source.second == 0 ? "event " : "row ", number, " of source ", source.second,
                      " of agent ", source.first);
}

}  // namespace

std::string JobOf(int agent, int source) {
  if (source == kRingSource) return absl::StrCat("rings-", agent);
  return source < kShortSource ? "train" : absl::StrCat("short-", agent);
}

std::string MetricOf(int source, int column) { return absl::StrCat("source", source, "c", column); }

bool ParseMetric(absl::string_view name, int* source, int* column) {
  return absl::ConsumePrefix(&name, "source") && name.size() == 3 && name[1] == 'c' &&
         absl::SimpleAtoi(name.substr(0, 1), source) && absl::SimpleAtoi(name.substr(2), column);
}

bool IsClockRight(HostId host) {
  // A clock that is this wrong is still right.
  constexpr int64_t kWithinNs = 20'000'000'000;
  const int64_t error = WallClockError(host);
  return error > -kWithinNs && error < kWithinNs;
}

double ValueOf(uint64_t agent, uint64_t source, uint64_t number, int column) {
  uint64_t z = (agent << 40) ^ (source << 32) ^ (number << 4) ^ static_cast<uint64_t>(column);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  switch (z % 16) {
    case 0:
      return std::numeric_limits<double>::infinity();
    case 1:
      return std::bit_cast<double>(0x7ff8000000000000ull | z >> 20);  // NaN with a payload.
    case 2:
    case 3:
      return std::bit_cast<double>(z & 0xbfffffffffffffffull);  // Any bits, but not huge ones.
    default:
      return static_cast<double>(z >> 44) / 1000;
  }
}

Model::Row& Model::Make(const Source& source, uint64_t number, int64_t time_ns, bool right_time) {
  std::vector<Row>& rows = rows_[source];
  TACHO_CHECK(number >= 1 && number <= rows.size() + 1);
  if (number <= rows.size()) return rows[number - 1];
  // Two rows of one time would be one.
  while (!times_[source].insert(time_ns).second) ++time_ns;
  return rows.emplace_back(Row{.time_ns = time_ns, .right_time = right_time});
}

void Model::Appended(const Source& source, uint64_t number, uint64_t sequence) {
  rows_[source][number - 1].sequence = sequence;
}

void Model::Recorded(const Source& source, uint64_t number) {
  rows_[source][number - 1].in_ring = true;
}

uint64_t Model::Made(const Source& source) const {
  const auto known = rows_.find(source);
  return known == rows_.end() ? 0 : known->second.size();
}

std::vector<Model::Source> Model::Sources() const {
  std::vector<Source> sources;
  for (const auto& [source, rows] : rows_) sources.push_back(source);
  return sources;
}

void Model::SpoolReplaced(int agent) {
  for (auto& [source, rows] : rows_) {
    if (source.first != agent) continue;
    for (Row& row : rows) {
      if (row.acknowledged) continue;
      row.sequence = 0;
      row.forgotten = true;
    }
  }
}

void Model::ForgetRings(int agent) {
  for (Row& row : rows_[{agent, kRingSource}]) {
    if (row.sequence == 0) row.in_ring = false;
  }
}

void Model::Trimmed(int agent, uint64_t begin) {
  for (auto& [source, rows] : rows_) {
    if (source.first != agent) continue;
    for (Row& row : rows) {
      if (row.sequence != 0 && row.sequence < begin) row.acknowledged = true;
    }
  }
}

void Model::Dropped(int agent, uint64_t begin, uint64_t end) {
  for (auto& [source, rows] : rows_) {
    if (source.first != agent) continue;
    for (Row& row : rows) {
      if (row.sequence != 0 && row.sequence >= begin && row.sequence < end) {
        row.may_be_dropped = true;
      }
    }
  }
}

void Model::ForgetUnsynced(int agent, uint64_t end) {
  for (auto& [source, rows] : rows_) {
    if (source.first != agent) continue;
    for (Row& row : rows) {
      if (row.sequence >= end) row.sequence = 0;
    }
  }
}

std::string Model::WrongSample(const Source& source, uint64_t number, int column, int64_t time_ns,
                               double value) const {
  const auto known = rows_.find(source);
  if (known == rows_.end() || number < 1 || number > known->second.size()) {
    return absl::StrCat("a query returned ", NameOf(source, number), ", which nobody made");
  }
  const Row& row = known->second[number - 1];
  if (row.time_ns != time_ns) {
    return absl::StrCat(NameOf(source, number), " has the time ", time_ns, ", not ", row.time_ns);
  }
  const double made = ValueOf(static_cast<uint64_t>(source.first),
                              static_cast<uint64_t>(source.second), number, column);
  if (std::bit_cast<uint64_t>(made) != std::bit_cast<uint64_t>(value)) {
    return absl::StrCat("column ", column, " of ", NameOf(source, number), " has the value ", value,
                        ", not ", made);
  }
  return "";
}

std::set<uint64_t> Model::Returned(const Source& source, int column, int64_t begin_ns,
                                   int64_t end_ns) const {
  std::set<uint64_t> numbers;
  const auto known = rows_.find(source);
  if (known == rows_.end()) return numbers;
  for (uint64_t number = 1; number <= known->second.size(); ++number) {
    const Row& row = known->second[number - 1];
    if (row.time_ns < begin_ns || row.time_ns >= end_ns) continue;
    if (row.time_ns < may_be_gone_before_ns_ || (row.seen & 1u << column) == 0) continue;
    numbers.insert(number);
  }
  return numbers;
}

std::string Model::FoundSample(const Source& source, uint64_t number, int column, int64_t time_ns,
                               double value, Found* found) {
  std::string wrong = WrongSample(source, number, column, time_ns, value);
  if (!wrong.empty()) return wrong;
  const Row& row = rows_[source][number - 1];
  if (row.right_time && time_ns < must_be_gone_before_ns_) {
    return absl::StrCat(NameOf(source, number), " is still there, ",
                        (must_be_gone_before_ns_ - time_ns) / 1'000'000'000,
                        " s after retention should have dropped it at the latest");
  }
  int& columns = found->numbers[source][number];
  if ((columns & 1 << column) != 0) {
    return absl::StrCat("a query returned ", NameOf(source, number), " twice");
  }
  columns |= 1 << column;
  return "";
}

std::string Model::FoundEvent(const Source& source, uint64_t number, int64_t time_ns,
                              Found* found) {
  const auto known = rows_.find(source);
  if (known == rows_.end() || number < 1 || number > known->second.size()) {
    return absl::StrCat("a query returned ", NameOf(source, number), ", which nobody made");
  }
  Row& row = known->second[number - 1];
  if (row.time_ns != time_ns) return absl::StrCat(NameOf(source, number), " has another time");
  int& columns = found->numbers[source][number];
  if (columns != 0) return absl::StrCat("a query returned ", NameOf(source, number), " twice");
  columns = 1;
  return "";
}

Model::Compared Model::Compare(const Found& found, const Chosen& required) {
  Compared compared;
  for (auto& [source, rows] : rows_) {
    const auto chosen = required.find(source);
    const auto of_source = found.numbers.find(source);
    const auto expected = static_cast<uint64_t>(source.second == 0 ? 1 : kColumns);
    for (uint64_t number = 1; number <= rows.size(); ++number) {
      Row& row = rows[number - 1];
      const auto is_there = of_source == found.numbers.end() ? std::map<uint64_t, int>::iterator()
                                                             : of_source->second.find(number);
      const bool any = of_source != found.numbers.end() && is_there != of_source->second.end();
      const auto columns = static_cast<unsigned>(any ? is_there->second : 0);
      if (row.time_ns < may_be_gone_before_ns_) {
        row.seen = columns;
        continue;
      }
      if ((row.seen & ~columns) != 0) {
        compared.wrong = absl::StrCat(NameOf(source, number), " was returned before, and is gone");
        return compared;
      }
      row.seen |= columns;
      // Some rows may have been made since.
      if (chosen == required.end() || number > chosen->second.size() ||
          !chosen->second[number - 1]) {
        continue;
      }
      const uint64_t missing = expected - static_cast<uint64_t>(std::popcount(columns));
      if (missing > 0 && row.right_time) {
        compared.missing += missing;
        compared.example = absl::StrCat(NameOf(source, number), " (sequence ", row.sequence,
                                        row.acknowledged ? ", acknowledged)" : ")");
        if (!row.may_be_dropped) compared.not_dropped = compared.example;
      } else {
        compared.missing_wrong_times += missing;
      }
    }
  }
  return compared;
}

Model::Chosen Model::Acknowledged() const {
  Chosen all;
  for (const auto& [source, rows] : rows_) {
    std::vector<bool>& chosen = all[source];
    for (const Row& row : rows) chosen.push_back(row.acknowledged);
  }
  return all;
}

Model::Chosen Model::Everything() const {
  Chosen all;
  for (const auto& [source, rows] : rows_) {
    std::vector<bool>& chosen = all[source];
    chosen.resize(rows.size());
    bool passed = false;
    for (size_t i = rows.size(); i-- > 0;) {
      const Row& row = rows[i];
      const bool taken = row.sequence != 0 || row.acknowledged;
      passed = passed || (taken && source.second != kRingSource);
      chosen[i] = taken || row.in_ring || (passed && !row.forgotten);
    }
  }
  return all;
}

std::string Model::Published(const Source& source, uint64_t number) {
  const auto known = rows_.find(source);
  if (known == rows_.end() || number < 1 || number > known->second.size()) {
    return absl::StrCat("a collector stored ", NameOf(source, number), ", which nobody made");
  }
  if (++known->second[number - 1].published > 1) {
    return absl::StrCat(NameOf(source, number), " was stored twice");
  }
  return "";
}

void Model::ForgetStored() {
  for (auto& [source, rows] : rows_) {
    for (Row& row : rows) row.seen = row.published = 0;
  }
}

uint64_t Model::rows() const {
  uint64_t sum = 0;
  for (const auto& [source, rows] : rows_) sum += rows.size();
  return sum;
}

uint64_t Model::acknowledged_rows() const {
  uint64_t sum = 0;
  for (const auto& [source, rows] : rows_) {
    for (const Row& row : rows) sum += row.acknowledged ? 1 : 0;
  }
  return sum;
}

}  // namespace tacho::simulate
