#include "server/interop/otlp_logs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::interop {
namespace {

namespace otlp_logs = opentelemetry::proto::logs::v1;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr uint64_t kTime = 1'700'000'000'000'000'000;
constexpr int64_t kNow = 1'700'000'100'000'000'000;

class OtlpLogsTest : public testing::Test {
 protected:
  OtlpLogsTest() {
    auto* const resource = request_.add_resource_logs();
    Set("service.name", "vision", resource->mutable_resource()->mutable_attributes());
    Set("telemetry.sdk.name", "x", resource->mutable_resource()->mutable_attributes());
    records_ = resource->add_scope_logs();
  }
  template <typename Attributes>
  static void Set(const char* key, const std::string& value, Attributes* attributes) {
    auto* const attribute = attributes->Add();
    attribute->set_key(key);
    attribute->mutable_value()->set_string_value(value);
  }
  otlp_logs::LogRecord* Record(const char* name) {
    auto* const record = records_->add_log_records();
    record->set_event_name(name);
    record->set_time_unix_nano(kTime);
    return record;
  }
  OtlpLogs Read() {
    auto read = ReadOtlpLogs(request_, {"service.name"}, kNow);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *std::move(read) : OtlpLogs();
  }
  // Of a request with one event.
  v1::Event ReadOne() {
    const auto read = Read();
    EXPECT_EQ(read.events.events.size(), 1u) << read.problem;
    return read.events.events.empty() ? v1::Event() : read.events.events[0].event;
  }

  opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest request_;
  otlp_logs::ScopeLogs* records_;
};

TEST(EventKindTest, OursAreKindsOfAttemptsAndWhatHasOurPrefix) {
  EXPECT_EQ(EventKindOf("checkpoint_saved"), "checkpoint_saved");
  EXPECT_EQ(EventKindOf("tacho.checkpoint_saved"), "checkpoint_saved");
  EXPECT_EQ(EventKindOf("tacho.sweep_began"), "sweep_began");
  for (const char* name : {"", "tacho.", "sweep_began", "browser.page_view", "Checkpoint_Saved"}) {
    EXPECT_EQ(EventKindOf(name), std::nullopt) << name;
  }
}

// They would change what the collector believes of its own conditions and losses.
TEST(EventKindTest, KindsOfTheCollectorAreNobodyElses) {
  for (const char* name : {"condition_raised", "condition_cleared", "data_lost"}) {
    EXPECT_EQ(EventKindOf(std::string("tacho.") + name), std::nullopt) << name;
  }
}

TEST_F(OtlpLogsTest, ARecordBecomesAnEvent) {
  auto* const record = Record("checkpoint_saved");
  record->mutable_body()->set_string_value("saved in 3 s");
  Set("path", "/ckpt/100", record->mutable_attributes());
  auto* const step = record->add_attributes();
  step->set_key("step");
  step->mutable_value()->set_int_value(100);
  const auto read = Read();
  ASSERT_EQ(read.events.events.size(), 1u);
  const ForeignEvent& event = read.events.events[0];
  EXPECT_EQ(event.event.kind(), "checkpoint_saved");
  EXPECT_EQ(event.event.message(), "saved in 3 s");
  EXPECT_EQ(event.event.time_unix_ns(), static_cast<int64_t>(kTime));
  ASSERT_TRUE(event.event.has_step());
  EXPECT_EQ(event.event.step(), 100);
  EXPECT_THAT(event.event.fields(), ElementsAre(Pair("path", "/ckpt/100")));
  EXPECT_THAT(read.events.sources[event.source], ElementsAre(Pair("service_name", "vision")));
}

TEST_F(OtlpLogsTest, TheOlderAttributeNamesAnEventToo) {
  auto* const record = Record("");
  Set("event.name", "tacho.preempted", record->mutable_attributes());
  Set("zone", "b", record->mutable_attributes());
  const auto event = ReadOne();
  EXPECT_EQ(event.kind(), "preempted");
  EXPECT_THAT(event.fields(), ElementsAre(Pair("zone", "b")));
}

TEST_F(OtlpLogsTest, TheTimeIsTheRecordsElseTheObservedElseNow) {
  auto* const record = Record("text");
  record->set_observed_time_unix_nano(kTime + 1);
  EXPECT_EQ(ReadOne().time_unix_ns(), static_cast<int64_t>(kTime));
  record->clear_time_unix_nano();
  EXPECT_EQ(ReadOne().time_unix_ns(), static_cast<int64_t>(kTime) + 1);
  record->clear_observed_time_unix_nano();
  EXPECT_EQ(ReadOne().time_unix_ns(), kNow);
  record->set_time_unix_nano(UINT64_MAX);
  EXPECT_THAT(Read().problem, HasSubstr("2262"));
}

TEST_F(OtlpLogsTest, AStepThatIsNoWholeNumberFromZeroIsAField) {
  auto* const record = Record("text");
  auto* const step = record->add_attributes();
  step->set_key("step");
  step->mutable_value()->set_string_value("7");
  auto event = ReadOne();
  EXPECT_FALSE(event.has_step());
  EXPECT_THAT(event.fields(), ElementsAre(Pair("step", "7")));
  step->mutable_value()->set_int_value(-1);
  event = ReadOne();
  EXPECT_FALSE(event.has_step());
  EXPECT_THAT(event.fields(), ElementsAre(Pair("step", "-1")));
}

TEST_F(OtlpLogsTest, ValuesOfAllTypesBecomeText) {
  auto* const record = Record("exited");
  record->mutable_body()->mutable_kvlist_value()->add_values()->set_key("a");
  record->add_attributes()->set_key("exit_code");
  record->mutable_attributes(0)->mutable_value()->set_int_value(137);
  record->add_attributes()->set_key("retried");
  record->mutable_attributes(1)->mutable_value()->set_bool_value(true);
  const auto event = ReadOne();
  EXPECT_EQ(event.message(), "{a=}");
  EXPECT_THAT(event.fields(),
              UnorderedElementsAre(Pair("exit_code", "137"), Pair("retried", "true")));
}

TEST_F(OtlpLogsTest, LongTextsAreCutBetweenCharacters) {
  auto* const record = Record("exited");
  std::string long_text;
  while (long_text.size() < 1100) long_text += "ä";
  record->mutable_body()->set_string_value("x" + long_text);
  Set("exception.stacktrace", long_text, record->mutable_attributes());
  const auto event = ReadOne();
  EXPECT_LE(event.message().size(), 1024u);
  EXPECT_GE(event.message().size(), 1020u);
  EXPECT_THAT(event.message(), EndsWith("ä…"));
  EXPECT_THAT(event.fields().at("exception.stacktrace"), EndsWith("ä…"));
  record->mutable_body()->set_string_value(std::string(1024, 'x'));
  EXPECT_EQ(ReadOne().message(), std::string(1024, 'x'));
}

TEST_F(OtlpLogsTest, OtherLogsAreRejectedAndTheRestIsRead) {
  Record("")->mutable_body()->set_string_value("GET / 200");
  Record("text");
  Record("browser.page_view");
  const auto read = Read();
  EXPECT_EQ(read.rejected, 2u);
  EXPECT_THAT(read.problem, HasSubstr("only events"));
  EXPECT_THAT(read.problem, HasSubstr("checkpoint_saved"));
  EXPECT_EQ(read.events.events.size(), 1u);
}

// A few bytes a record would otherwise stand for a copy of the resource's labels each.
TEST_F(OtlpLogsTest, TooMuchIsRefused) {
  request_.mutable_resource_logs(0)
      ->mutable_resource()
      ->mutable_attributes(0)
      ->mutable_value()
      ->set_string_value(std::string(1 << 20, 'x'));
  for (int i = 0; i < 70; ++i) Record("text");
  EXPECT_TRUE(absl::IsResourceExhausted(ReadOtlpLogs(request_, {"service.name"}, kNow).status()));
  EXPECT_TRUE(ReadOtlpLogs(request_, {}, kNow).ok());
  for (size_t i = 70; i <= ForeignEvents::kMaxEvents; ++i) Record("text");
  EXPECT_TRUE(absl::IsResourceExhausted(ReadOtlpLogs(request_, {}, kNow).status()));
}

}  // namespace
}  // namespace tacho::server::interop
