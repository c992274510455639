// What a sender is answered, rule by rule of the two specifications.
#include "server/interop/remote_write_door.h"

#include <snappy.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/prometheus_remote.pb.h"
#include "interop/prometheus_write_v2.pb.h"
#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::HasSubstr;

constexpr char kType1[] = "application/x-protobuf";
constexpr char kType2[] = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
constexpr int64_t kNowMs = ingest::kNowNs / 1'000'000;

class RemoteWriteDoorTest : public IntakeTest {
 protected:
  http::HttpResponse Post(const std::string& message, const std::string& type = kType1,
                          const std::string& encoding = "snappy") {
    http::HttpRequest request;
    request.method = "POST";
    request.path = "/api/v1/write";
    request.headers = {{"content-type", type}, {"content-encoding", encoding}};
    snappy::Compress(message.data(), message.size(), &request.body);
    return Send(request);
  }
  http::HttpResponse Send(const http::HttpRequest& request) {
    const auto responder = std::make_shared<bridge::RecordedResponder>();
    door_.Handle(request, responder);
    return responder->answer();
  }
  static std::string Header(const http::HttpResponse& response, absl::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }
  static ::prometheus_remote::WriteRequest Request1(int64_t time_ms = kNowMs) {
    ::prometheus_remote::WriteRequest request;
    auto* const series = request.add_timeseries();
    for (const auto& [name, value] : {std::pair("__name__", "loss"), {"job", "vision"}}) {
      auto* const label = series->add_labels();
      label->set_name(name);
      label->set_value(value);
    }
    auto* const sample = series->add_samples();
    sample->set_value(0.25);
    sample->set_timestamp(time_ms);
    return request;
  }
  static io::prometheus::write::v2::Request Request2() {
    io::prometheus::write::v2::Request request;
    for (const char* symbol : {"", "__name__", "loss", "job", "vision"})
      request.add_symbols(symbol);
    for (int i = 0; i < 2; ++i) {
      auto* const series = request.add_timeseries();
      for (const uint32_t ref : {1, 2, 3, 4}) series->add_labels_refs(ref);
      auto* const sample = series->add_samples();
      sample->set_value(i);
      sample->set_timestamp(kNowMs + i);
    }
    return request;
  }

  RemoteWriteDoor door_{
      {.intake = intake_.get(), .guard = {}, .max_request_bytes = 1 << 20, .registry = &registry_}};
};

TEST_F(RemoteWriteDoorTest, StoredSamplesAreAnswered204) {
  EXPECT_EQ(Post(Request1().SerializeAsString()).status, 204);
  EXPECT_THAT(Stored("loss"), testing::ElementsAre(testing::Pair(0, 0.25)));
  EXPECT_EQ(
      Post(Request1().SerializeAsString(), "application/x-protobuf;proto=prometheus.WriteRequest")
          .status,
      204);
}

TEST_F(RemoteWriteDoorTest, A20RequestIsToldHowMuchWasWritten) {
  const auto response = Post(Request2().SerializeAsString(), kType2);
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(Header(response, "X-Prometheus-Remote-Write-Samples-Written"), "2");
  EXPECT_EQ(Header(response, "X-Prometheus-Remote-Write-Histograms-Written"), "0");
  EXPECT_EQ(Header(response, "X-Prometheus-Remote-Write-Exemplars-Written"), "0");
}

TEST_F(RemoteWriteDoorTest, AHistogramCountsAsOne) {
  auto request = Request2();
  for (auto& series : *request.mutable_timeseries()) {
    series.clear_samples();
    auto* const histogram = series.add_histograms();
    histogram->set_count_int(1);
    histogram->set_timestamp(kNowMs);
    histogram->set_zero_count_int(1);
  }
  const auto response = Post(request.SerializeAsString(), kType2);
  EXPECT_EQ(response.status, 204) << response.body;
  EXPECT_EQ(Header(response, "X-Prometheus-Remote-Write-Samples-Written"), "0");
  EXPECT_EQ(Header(response, "X-Prometheus-Remote-Write-Histograms-Written"), "2");
}

TEST_F(RemoteWriteDoorTest, APartThatIsRefusedForGoodIsA400WithCounts) {
  auto request = Request2();
  request.mutable_timeseries(1)->mutable_samples(0)->set_timestamp(1);
  const auto response = Post(request.SerializeAsString(), kType2);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(Header(response, "X-Prometheus-Remote-Write-Samples-Written"), "1");
  EXPECT_THAT(response.body, HasSubstr("1 samples were refused, and all others stored"));
  EXPECT_THAT(response.body, HasSubstr("storage.retention"));
}

TEST_F(RemoteWriteDoorTest, AnotherFormIsRefusedWith415) {
  const std::string message = Request1().SerializeAsString();
  EXPECT_EQ(Post(message, "application/json").status, 415);
  EXPECT_EQ(Post(message, "application/x-protobuf;proto=some.Other").status, 415);
  EXPECT_EQ(Post(message, kType1, "gzip").status, 415);
  EXPECT_EQ(Post(message, kType1, "").status, 415);
}

TEST_F(RemoteWriteDoorTest, DamagedBytesAreRefusedWith400AndNothingIsStored) {
  http::HttpRequest request;
  request.headers = {{"content-type", kType1}, {"content-encoding", "snappy"}};
  for (const std::string& body :
       {std::string(), std::string("\xff\xff\xff\xff\xff\xff"), std::string("\x05no snappy")}) {
    request.body = body;
    EXPECT_EQ(Send(request).status, 400) << body.size();
  }
  EXPECT_EQ(Post("no protobuf").status, 400);
  const std::string whole = Request1().SerializeAsString();
  EXPECT_EQ(Post(whole + whole.substr(0, 5)).status, 400);
  EXPECT_EQ(StoredRows(), 0u);
}

// "A block begins with the decoded length": the bomb is refused by it.
TEST_F(RemoteWriteDoorTest, WhatUnpacksToTooMuchIsRefusedBeforeItIsUnpacked) {
  const auto response = Post(std::string(2 << 20, 'a'));
  EXPECT_EQ(response.status, 413);
  EXPECT_THAT(response.body, HasSubstr("interop.max_request_bytes"));
}

TEST_F(RemoteWriteDoorTest, AnEmptyRequestIsASuccess) {
  EXPECT_EQ(Post("").status, 204);
  EXPECT_EQ(Post("", kType2).status, 204);
}

TEST_F(RemoteWriteDoorTest, WhatTimeHealsIs503WithADelay) {
  admission_.StartDraining();
  const auto response = Post(Request1().SerializeAsString());
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(Header(response, "Retry-After"), "");
}

}  // namespace
}  // namespace tacho::server::interop
