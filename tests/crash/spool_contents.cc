#include "tests/crash/spool_contents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/codec/bytes.h"

namespace tacho::crash {
namespace {

using agent::Spool;
using storage::PutString;

constexpr char kSource[] = "file";
constexpr int64_t kBeginNs = 1'700'000'000'000'000'000;

v1::Layout LayoutOf(uint64_t number) {
  v1::Layout layout;
  layout.mutable_source()->set_job("job");
  layout.mutable_source()->set_host("host");
  for (uint64_t i = 0; i <= number % 3; ++i) {
    layout.add_series()->mutable_metric()->set_name(absl::StrCat("metric_", i));
  }
  return layout;
}

bool IsEvent(uint64_t number) { return number % 4 == 2; }
std::string EventText(uint64_t number) { return absl::StrCat("event ", number); }

}  // namespace

std::string EncodeSpool(const SpoolContents& contents) {
  std::string out;
  storage::PutBe64(contents.generation, &out);
  storage::PutBe64(contents.begin, &out);
  storage::PutBe64(contents.end, &out);
  PutString(contents.checkpoint, &out);
  for (const std::string& entry : contents.entries) PutString(entry, &out);
  return out;
}

SpoolContents DecodeSpool(const std::string& bytes) {
  SpoolContents contents;
  storage::ByteReader in(bytes);
  contents.generation = in.Be64();
  contents.begin = in.Be64();
  contents.end = in.Be64();
  contents.checkpoint = std::string(in.String());
  while (in.ok() && !in.AtEnd()) contents.entries.emplace_back(in.String());
  return contents;
}

std::string CheckpointOf(uint64_t number) { return absl::StrCat(number); }

absl::Status AppendToSpool(Spool* spool, uint64_t number) {
  const agent::RowSink::Checkpoint at = {kSource, CheckpointOf(number)};
  if (IsEvent(number)) {
    v1::Event event;
    event.set_kind("note");
    event.set_message(EventText(number));
    return spool->AppendEvent(event, at);
  }
  const v1::Layout layout = LayoutOf(number);
  const auto id = spool->DefineLayout(layout);
  if (!id.ok()) return id.status();
  const int64_t time = kBeginNs + static_cast<int64_t>(number);
  const std::vector<double> values(static_cast<size_t>(layout.series_size()),
                                   static_cast<double>(number));
  return spool->AppendRows(*id, {&time, 1}, {}, values, at);
}

bool IsSpooled(const std::string& entry, uint64_t number, uint64_t sequence) {
  v1::ClientMessage message;
  if (!message.ParseFromString(entry)) return false;
  if (IsEvent(number)) {
    return message.event().sequence() == sequence && message.event().message() == EventText(number);
  }
  const v1::Batch& batch = message.batch();
  const auto value = static_cast<double>(number);
  return batch.sequence() == sequence && batch.times_unix_ns_size() == 1 &&
         batch.times_unix_ns(0) == kBeginNs + static_cast<int64_t>(number) &&
         batch.values_size() == LayoutOf(number).series_size() &&
         std::all_of(batch.values().begin(), batch.values().end(),
                     [value](double one) { return one == value; });
}

absl::StatusOr<SpoolContents> ReadSpool(Spool* spool) {
  SpoolContents contents;
  contents.generation = spool->generation();
  contents.begin = spool->begin();
  contents.end = spool->end();
  contents.checkpoint = spool->ReadCheckpoint(kSource);
  for (uint64_t next = contents.begin;;) {
    const auto entries = spool->Read(next, UINT64_MAX);
    if (!entries.ok()) return entries.status();
    if (entries->empty()) return contents;
    for (const Spool::Entry& entry : *entries) {
      const uint64_t at = entry.sequence - contents.begin;
      contents.entries.resize(std::max<size_t>(contents.entries.size(), at + 1));
      contents.entries[at] = entry.message.bytes();
    }
    next = entries->back().sequence + 1;
  }
}

}  // namespace tacho::crash
