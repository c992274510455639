// Each way in which a message can be malformed, what ends the stream for it, and what the text
// says. Tested against the session, and over a socket.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tacho/v1/ingest.pb.h"
#include "tests/server/ingest/ingest_messages.h"

namespace tacho::server::ingest {

struct Malformed {
  const char* name;
  // Sent before, and accepted.
  std::vector<v1::ClientMessage> before;
  v1::ClientMessage message;
  absl::StatusCode code;
  const char* text;  // Part of the status' text.
};

inline v1::ClientMessage Spoiled(v1::ClientMessage message,
                                 const std::function<void(v1::ClientMessage&)>& spoil) {
  spoil(message);
  return message;
}

inline std::vector<Malformed> AllMalformed() {
  using M = v1::ClientMessage;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto precondition = absl::StatusCode::kFailedPrecondition;
  const auto exhausted = absl::StatusCode::kResourceExhausted;
  const std::vector<M> greeted = {HelloMessage()};
  const std::vector<M> defined = {HelloMessage(), LayoutMessage()};
  const auto hello = [](auto spoil) {
    return Spoiled(HelloMessage(), [&](M& m) { spoil(*m.mutable_hello()); });
  };
  const auto layout = [](auto spoil) {
    return Spoiled(LayoutMessage(), [&](M& m) { spoil(*m.mutable_layout()); });
  };
  const auto batch = [](auto spoil) {
    return Spoiled(BatchMessage(1), [&](M& m) { spoil(*m.mutable_batch()); });
  };
  const auto event = [](auto spoil) {
    return Spoiled(EventMessage(1), [&](M& m) { spoil(*m.mutable_event()); });
  };
  return {
      {"Nothing", greeted, M(), invalid, "message"},
      {"NothingFirst", {}, M(), invalid, "message"},
      {"BatchBeforeHello", {}, BatchMessage(1), precondition, "hello"},
      {"SecondHello", greeted, HelloMessage(), precondition, "hello"},
      {"NoAgentId", {}, HelloMessage(""), invalid, "hello.agent_id"},
      {"LongAgentId", {}, HelloMessage(std::string(129, 'a')), invalid, "hello.agent_id"},
      {"NoGeneration", {}, HelloMessage("a", 0), invalid, "hello.spool_generation"},
      {"NoFirstSequence", {}, HelloMessage("a", 1, 0), invalid, "hello.first_sequence"},
      {"HugeAcknowledgedSequence",
       {},
       hello([](v1::Hello& h) { h.set_acknowledged_sequence((uint64_t{1} << 62) + 1); }),
       invalid,
       "hello.acknowledged_sequence"},
      {"LongVersion",
       {},
       hello([](v1::Hello& h) { h.set_version(std::string(65, 'v')); }),
       invalid,
       "hello.version"},
      {"ManyIdentityLabels",
       {},
       hello([](v1::Hello& h) {
         for (int i = 0; i < 33; ++i) h.add_identity()->set_name("zone");
       }),
       invalid,
       "hello.identity"},
      {"BadIdentityLabel",
       {},
       hello([](v1::Hello& h) { h.add_identity()->set_name("0"); }),
       invalid,
       "hello.identity[0]"},
      {"LayoutIdTooHigh", greeted, LayoutMessage(1, 4), invalid, "layout.id"},
      {"NoSeries", greeted, LayoutMessage(0), invalid, "layout.series"},
      {"ManySeries", greeted, LayoutMessage(9), exhausted, "layout.series"},
      {"NoJob", greeted, layout([](v1::Layout& l) { l.mutable_source()->clear_job(); }), invalid,
       "layout.source.job"},
      {"NoHost", greeted, layout([](v1::Layout& l) { l.mutable_source()->clear_host(); }), invalid,
       "layout.source.host"},
      {"BatchWithoutSequence", defined, BatchMessage(0), invalid, "batch.sequence"},
      {"HugeSequence", defined, BatchMessage(UINT64_MAX), invalid, "batch.sequence"},
      {"UnknownLayout", defined, BatchMessage(1, {1, 2}, 1, 3), precondition, "batch.layout"},
      {"NoRows", defined, BatchMessage(1, {}, 0), invalid, "batch.times_unix_ns"},
      {"ManyRows", defined, BatchMessage(1, std::vector<double>(202), 101), exhausted,
       "batch.times_unix_ns"},
      {"TooFewValues", defined, BatchMessage(1, {1}), invalid, "batch.values"},
      {"TooManyValues", defined, BatchMessage(1, {1, 2, 3}), invalid, "batch.values"},
      {"StepsMissing", defined, batch([](v1::Batch& b) { b.clear_steps(); }), invalid,
       "batch.steps"},
      {"TimeBefore1970", defined, batch([](v1::Batch& b) { b.set_times_unix_ns(0, -1); }), invalid,
       "batch.times_unix_ns"},
      {"EventWithoutSequence", greeted, EventMessage(0), invalid, "event.sequence"},
      {"EventWithoutKind", greeted, event([](v1::Event& e) { e.clear_kind(); }), invalid,
       "event.kind"},
      {"EventWithoutJob", greeted, event([](v1::Event& e) { e.mutable_source()->clear_job(); }),
       invalid, "event.source.job"},
      {"EventBefore1970", greeted, event([](v1::Event& e) { e.set_time_unix_ns(-5); }), invalid,
       "event.time_unix_ns"},
      {"LongEventMessage", greeted,
       event([](v1::Event& e) { e.set_message(std::string(1025, 'm')); }), invalid,
       "event.message"},
      {"ManyEventFields", greeted, event([](v1::Event& e) {
         for (int i = 0; i < 33; ++i) (*e.mutable_fields())[std::to_string(i)] = "x";
       }),
       invalid, "event.fields"},
      {"AttributesWithoutJob", greeted,
       Spoiled(AttributesMessage(1), [](M& m) { m.mutable_attributes()->clear_job(); }), invalid,
       "attributes.job"},
      {"LongAttribute", greeted,
       Spoiled(
           AttributesMessage(1),
           [](M& m) { (*m.mutable_attributes()->mutable_values())["k"] = std::string(4097, 'v'); }),
       invalid, "attributes.values.k"},
      {"GapBackwards", greeted, GapMessage(9, 5, 4), invalid, "gap.lost"},
      {"GapFromZero", greeted, GapMessage(9, 0, 4), invalid, "gap.lost.first"},
      {"GapToItself", greeted, GapMessage(4, 1, 4), invalid, "gap.sequence"},
      {"GapOverItself", greeted, GapMessage(3, 1, 4), invalid, "gap.sequence"},
  };
}

// Each way in which one series of a layout can break a rule, while the other keeps them all.
struct InvalidSeries {
  const char* name;
  v1::ClientMessage layout;  // Its second series is the one.
  const char* text;          // Part of the status that the agent gets.
};

inline std::vector<InvalidSeries> AllInvalidSeries() {
  const auto series = [](auto spoil) {
    return Spoiled(LayoutMessage(),
                   [&](v1::ClientMessage& m) { spoil(*m.mutable_layout()->mutable_series(1)); });
  };
  const auto label = [&series](const char* name, const std::string& value) {
    return series([&](v1::Layout::Series& s) {
      s.mutable_labels(0)->set_name(name);
      s.mutable_labels(0)->set_value(value);
    });
  };
  using S = v1::Layout::Series;
  return {
      {"NoMetricName", series([](S& s) { s.mutable_metric()->clear_name(); }),
       "layout.series[1].metric.name"},
      {"ControlInMetricName", series([](S& s) { s.mutable_metric()->set_name("a\nb"); }),
       "layout.series[1].metric.name"},
      {"LongMetricName", series([](S& s) { s.mutable_metric()->set_name(std::string(257, 'm')); }),
       "257 bytes"},
      {"LongUnit", series([](S& s) { s.mutable_metric()->set_unit(std::string(64, 's')); }),
       "metric.unit"},
      {"LongHelp", series([](S& s) { s.mutable_metric()->set_help(std::string(1025, 'h')); }),
       "metric.help"},
      {"UnknownType",
       series([](S& s) { s.mutable_metric()->set_type(static_cast<v1::MetricType>(77)); }),
       "metric.type"},
      {"ReservedLabel", label("host", "x"), "reserved"},
      {"OverflowLabel", label("overflow", "true"), "reserved"},
      {"InternalLabel", label("__name__", "x"), "reserved"},
      {"LabelNameWithDash", label("a-b", "x"), "layout.series[1].labels.name"},
      {"EmptyLabelValue", label("chip", ""), "layout.series[1].labels.chip"},
      {"LongLabelValue", label("chip", std::string(1025, 'x')), "labels.chip"},
      {"LabelTwice", series([](S& s) { *s.add_labels() = S(s).labels(0); }), "twice"},
      {"ManyLabels", series([](S& s) {
         for (int i = 0; i < 64; ++i) {
           auto* added = s.add_labels();
           added->set_name("l" + std::to_string(i));
           added->set_value("x");
         }
       }),
       "has 65; at most 64"},
  };
}

}  // namespace tacho::server::ingest
