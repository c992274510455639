#include "tests/crash/contents.h"

#include <bit>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "storage/codec/bytes.h"
#include "tests/crash/plan.h"
#include "tests/support/next_block.h"

namespace tacho::crash {
namespace {

using storage::ByteReader;
using storage::PutString;
using storage::PutVarint;

absl::StatusOr<Contents::Samples> ReadSeries(const storage::Store& store,
                                             const storage::SeriesPtr& series,
                                             const std::string& name) {
  Contents::Samples samples;
  const auto reader = store.Read(series, {});
  storage::SampleBlock block;
  for (;;) {
    const auto more = NextBlock(reader, &block);
    if (!more.ok()) {
      return absl::Status(more.status().code(), absl::StrCat(name, ": ", more.status().message()));
    }
    if (!*more) return samples;
    for (size_t i = 0; i < block.size(); ++i) {
      const std::tuple key(block.times[i], block.attempts[i], block.steps[i]);
      if (!samples.empty() && key <= samples.rbegin()->first) {
        return absl::InternalError(
            absl::StrCat(name, ": a sample at ", block.times[i], " comes twice or out of order"));
      }
      samples.emplace_hint(samples.end(), key, std::bit_cast<uint64_t>(block.values[i]));
    }
  }
}

std::string EventText(const storage::Event& event) {
  std::string text =
      absl::StrCat(event.source.job, "|", event.source.host, "|", event.kind, "|", event.message);
  for (const auto& [name, value] : event.fields) absl::StrAppend(&text, "|", name, "=", value);
  return text;
}

template <typename Map, typename Describe>
void CompareMaps(const char* what, const Map& expected, const Map& found, const Describe& describe,
                 std::string* out) {
  int told = 0;
  const auto tell = [&](const char* how, const auto& key) {
    if (++told <= 5) absl::StrAppend(out, "  ", what, " ", describe(key), ": ", how, "\n");
  };
  for (const auto& [key, value] : expected) {
    const auto at = found.find(key);
    if (at == found.end()) {
      tell("missing", key);
    } else if (!(at->second == value)) {
      tell("differs", key);
    }
  }
  for (const auto& [key, value] : found) {
    if (!expected.contains(key)) tell("not expected", key);
  }
  if (told > 5) absl::StrAppend(out, "  ", what, ": ", told - 5, " more\n");
}

}  // namespace

absl::StatusOr<Contents> ReadContents(const storage::Store& store,
                                      std::map<std::string, absl::Status>* failures) {
  Contents contents;
  for (uint32_t agent = 0; agent < kAgents; ++agent) {
    contents.durable[AgentName(agent)] = store.DurableSequences(AgentName(agent), kGeneration);
  }
  std::vector<std::string> jobs = {""};
  for (const storage::JobSummary& job : store.Jobs()) jobs.push_back(job.name);
  for (const std::string& job : jobs) {
    const auto events = store.Events(job, INT64_MIN, INT64_MAX);
    if (!events.ok()) {
      if (failures == nullptr) return events.status();
      failures->emplace("events", events.status());
    }
    for (const storage::Event& event : events.ok() ? *events : std::vector<storage::Event>()) {
      // A gap is filed under the time at which it came.
      contents.events.emplace(EventText(event), job.empty() ? 0 : event.time_ns);
    }
    if (job.empty()) continue;
    const auto detail = store.FindJob(job);
    if (!detail) return absl::InternalError(job + " is listed and cannot be found");
    for (const storage::AttemptInfo& attempt : detail->attempts) {
      if (attempt.attributes.empty()) continue;
      contents.attributes[absl::StrCat(job, "/", attempt.attempt)] = attempt.attributes;
    }
    const auto all = store.FindSeries({.job = job}, SIZE_MAX);
    if (!all.ok()) return all.status();
    for (const storage::SeriesPtr& series : *all) {
      const std::string name =
          absl::StrCat(job, "/", series->metric->name, "/", series->source->task.value_or(99));
      auto samples = ReadSeries(store, series, name);
      if (!samples.ok()) {
        if (failures == nullptr) return samples.status();
        failures->emplace(name, samples.status());
        continue;
      }
      if (contents.series.contains(name)) {
        return absl::InternalError(absl::StrCat(name, " is registered twice"));
      }
      if (!samples->empty()) contents.series[name] = *std::move(samples);
    }
  }
  return contents;
}

std::string EncodeContents(const Contents& contents) {
  std::string out;
  PutVarint(contents.series.size(), &out);
  for (const auto& [name, samples] : contents.series) {
    PutString(name, &out);
    PutVarint(samples.size(), &out);
    for (const auto& [key, bits] : samples) {
      storage::PutBe64(static_cast<uint64_t>(std::get<0>(key)), &out);
      PutVarint(std::get<1>(key), &out);
      storage::PutBe64(static_cast<uint64_t>(std::get<2>(key)), &out);
      storage::PutBe64(bits, &out);
    }
  }
  PutVarint(contents.durable.size(), &out);
  for (const auto& [agent, set] : contents.durable) {
    PutString(agent, &out);
    PutString(set.Encode(), &out);
  }
  PutVarint(contents.events.size(), &out);
  for (const auto& [text, time] : contents.events) {
    PutString(text, &out);
    storage::PutBe64(static_cast<uint64_t>(time), &out);
  }
  PutVarint(contents.attributes.size(), &out);
  for (const auto& [attempt, values] : contents.attributes) {
    PutString(attempt, &out);
    PutVarint(values.size(), &out);
    for (const auto& [name, value] : values) {
      PutString(name, &out);
      PutString(value, &out);
    }
  }
  return out;
}

std::optional<Contents> DecodeContents(absl::string_view bytes) {
  Contents contents;
  ByteReader in(bytes);
  for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
    auto& samples = contents.series[std::string(in.String())];
    for (uint64_t count = in.Varint(); count > 0 && in.ok(); --count) {
      const auto time = static_cast<int64_t>(in.Be64());
      const auto attempt = static_cast<uint32_t>(in.Varint());
      const auto step = static_cast<int64_t>(in.Be64());
      samples[{time, attempt, step}] = in.Be64();
    }
  }
  for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
    const std::string agent(in.String());
    const auto set = storage::SequenceSet::Decode(in.String());
    if (!set) return std::nullopt;
    contents.durable[agent] = *set;
  }
  for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
    const std::string text(in.String());
    contents.events.emplace(text, static_cast<int64_t>(in.Be64()));
  }
  for (uint64_t left = in.Varint(); left > 0 && in.ok(); --left) {
    auto& values = contents.attributes[std::string(in.String())];
    for (uint64_t count = in.Varint(); count > 0 && in.ok(); --count) {
      const std::string name(in.String());
      values[name] = std::string(in.String());
    }
  }
  if (!in.AtEnd()) return std::nullopt;
  return contents;
}

std::string Compare(const Contents& expected, const Contents& found) {
  std::string out;
  const auto text = [](const std::string& key) { return key; };
  CompareMaps("series", expected.series, found.series, text, &out);
  for (const auto& [name, samples] : expected.series) {
    const auto at = found.series.find(name);
    if (at == found.series.end()) continue;
    CompareMaps(
        name.c_str(), samples, at->second,
        [&, &samples = samples](const auto& key) {
          const auto bits = [&](const Contents::Samples& in) {
            const auto value = in.find(key);
            return value == in.end() ? std::string("none") : absl::StrCat(absl::Hex(value->second));
          };
          return absl::StrCat("time ", std::get<0>(key), " attempt ", std::get<1>(key), " step ",
                              std::get<2>(key), " (expected ", bits(samples), ", found ",
                              bits(at->second), ")");
        },
        &out);
  }
  CompareMaps("agent", expected.durable, found.durable, text, &out);
  CompareMaps("attributes", expected.attributes, found.attributes, text, &out);
  if (expected.events != found.events) {
    CompareMaps("event", expected.events, found.events, text, &out);
    absl::StrAppend(&out, "  events: ", expected.events.size(), " expected, ", found.events.size(),
                    " found\n");
  }
  return out;
}

}  // namespace tacho::crash
