#include "storage/codec/keys.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/codec/bytes.h"

namespace tacho::storage {
namespace {

constexpr char kPartitionPrefix[] = "day.";

std::string Key(char kind, JobId job) {
  std::string key(1, kind);
  PutBe32(job, &key);
  return key;
}

std::string Key(char kind, JobId job, uint64_t id) {
  std::string key = Key(kind, job);
  PutBe64(id, &key);
  return key;
}

}  // namespace

int64_t DayOf(int64_t time_ns) {
  return time_ns >= 0 ? time_ns / kDayNs : -((-(time_ns + 1)) / kDayNs) - 1;
}

std::string PartitionName(int64_t day) { return absl::StrCat(kPartitionPrefix, day); }

std::optional<int64_t> ParsePartitionName(absl::string_view name) {
  int64_t day = 0;
  if (!absl::ConsumePrefix(&name, kPartitionPrefix) || !absl::SimpleAtoi(name, &day)) {
    return std::nullopt;
  }
  return day;
}

std::string TimeColumnKey(JobId job, LayoutId layout, int64_t first_time_ns,
                          FramePosition position) {
  std::string key = Key('T', job, layout);
  PutBeTime(first_time_ns, &key);
  PutBe64(position, &key);
  return key;
}

std::string ValueColumnKey::Encode() const {
  std::string key = Key('V', job);
  PutBe32(metric, &key);
  PutBe64(series, &key);
  PutBeTime(first_time_ns, &key);
  PutBe64(position, &key);
  return key;
}

std::optional<ValueColumnKey> ValueColumnKey::Decode(absl::string_view bytes) {
  ByteReader in(bytes);
  if (in.Byte() != 'V') return std::nullopt;
  ValueColumnKey key;
  key.job = in.Be32();
  key.metric = in.Be32();
  key.series = in.Be64();
  key.first_time_ns = in.BeTime();
  key.position = in.Be64();
  if (!in.AtEnd()) return std::nullopt;
  return key;
}

std::string ValueColumnKey::SeriesPrefix(const Series& series) {
  std::string key = Key('V', series.job_id);
  PutBe32(series.metric_id, &key);
  PutBe64(series.id, &key);
  return key;
}

std::string JobPrefix(char kind, JobId job) { return Key(kind, job); }

std::string JobKey(JobId job) { return Key('J', job); }

std::string MetricKey(JobId job, MetricId metric) {
  std::string key = Key('M', job);
  PutBe32(metric, &key);
  return key;
}

std::string SeriesKey(JobId job, SeriesId first) { return Key('S', job, first); }
std::string LayoutKey(JobId job, LayoutId layout) { return Key('L', job, layout); }
std::string NextIdsKey() { return "N"; }
std::string SealedKey(JobId job, LayoutId layout) { return Key('P', job, layout); }

std::string JobSummaryKey(JobId job) { return Key('J', job); }

std::string AttemptKey(JobId job, uint32_t attempt) {
  std::string key = Key('A', job);
  PutBe32(attempt, &key);
  return key;
}

std::string AttributesKey(JobId job, uint32_t attempt) {
  std::string key = Key('B', job);
  PutBe32(attempt, &key);
  return key;
}

std::string TaskKey(JobId job, std::optional<uint32_t> task, absl::string_view host) {
  std::string key = Key('K', job);
  key.push_back(task ? 1 : 0);
  if (task) PutBe32(*task, &key);
  key.append(host.data(), host.size());
  return key;
}

std::string CommitCountKey() { return "C"; }

std::string OriginKey(absl::string_view agent_id, uint64_t generation) {
  std::string key(1, 'O');
  key.append(agent_id.data(), agent_id.size());
  PutBe64(generation, &key);
  return key;
}

std::string OwnerKey(absl::string_view agent_id) { return absl::StrCat("U", agent_id); }
std::string ForwardKey(absl::string_view receiver) { return absl::StrCat("F", receiver); }

std::string EventKey(JobId job, int64_t time_ns, uint64_t number) {
  std::string key;
  PutBe32(job, &key);
  PutBeTime(time_ns, &key);
  PutBe64(number, &key);
  return key;
}

std::string PrefixEnd(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

}  // namespace tacho::storage
