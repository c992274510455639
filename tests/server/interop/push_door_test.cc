// Pushes from the request to the store and to what /metrics is made of.
#include "server/interop/push_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <memory>
#include <string>

#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kGroup[] = "/metrics/job/vision/shard/3";

std::string Gzip(std::string text) {
  std::string packed(text.size() + 100, '\0');
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class PushDoorTest : public IntakeTest {
 protected:
  http::HttpResponse Send(const std::string& method, const std::string& path,
                          const std::string& body = "",
                          const http::HttpRequest::Pairs& headers = {}) {
    http::HttpRequest request;
    request.method = method;
    request.path = path;
    request.headers = headers;
    request.body = body;
    const auto responder = std::make_shared<bridge::RecordedResponder>();
    door_.Handle(request, responder);
    wall_ += absl::Seconds(1);
    return responder->answer();
  }
  // The newest values by metric, without the times of pushes.
  std::map<std::string, double> Shown() {
    std::map<std::string, double> shown;
    store_.get()->VisitLatestRows([&](const storage::LatestRow& row) {
      for (size_t i = 0; i < row.values.size(); ++i) {
        const std::string& name = row.layout->series[i]->metric->name;
        if (!IsStaleMarker(row.values[i]) && name != kPushTime) shown[name] = row.values[i];
      }
    });
    return shown;
  }

  absl::Time wall_ = now_();
  absl::Time monotonic_ = absl::UnixEpoch();
  PushDoor door_{[this] {
    PushDoorOptions options;
    options.intake = intake_.get();
    options.max_request_bytes = 1 << 20;
    options.registry = &registry_;
    options.now = [this] { return wall_; };
    options.monotonic = [this] { return monotonic_; };
    return options;
  }()};
};

TEST_F(PushDoorTest, APushIsStoredAtItsTime) {
  const auto answer = Send("POST", kGroup, "accuracy 0.5\n");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Send("POST", kGroup, "accuracy 0.75").status, 200);
  EXPECT_THAT(Stored("accuracy"), ElementsAre(Pair(0, 0.5), Pair(1000, 0.75)));
  EXPECT_THAT(Stored("push_time_seconds"),
              ElementsAre(Pair(0, static_cast<double>(ingest::kNowNs) / 1e9),
                          Pair(1000, static_cast<double>(ingest::kNowNs) / 1e9 + 1)));
}

TEST_F(PushDoorTest, APostReplacesTheSameNames) {
  Send("POST", kGroup, "accuracy{set=\"a\"} 1\nspeed 2\n");
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 1), Pair("speed", 2)));
  Send("POST", kGroup, "accuracy{set=\"b\"} 3\n");
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 3), Pair("speed", 2)));
  EXPECT_THAT(Stored("accuracy"), ElementsAre(Pair(0, 1), Pair(1000, 3))) << "nothing is deleted";
}

TEST_F(PushDoorTest, APutReplacesTheGroup) {
  Send("POST", kGroup, "accuracy 1\nspeed 2\n");
  Send("POST", "/metrics/job/vision/shard/4", "other 5\n");
  EXPECT_EQ(Send("PUT", kGroup, "accuracy 3\n").status, 200);
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 3), Pair("other", 5)));
}

TEST_F(PushDoorTest, ASeriesThatIsWrittenInTwoWaysDoesNotEndItself) {
  Send("POST", kGroup, "accuracy{set=\"\"} 1\n");
  Send("PUT", kGroup, "accuracy 2\n");
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 2)));
}

TEST_F(PushDoorTest, ADeleteEndsTheGroupAndAPushBeginsItAgain) {
  Send("POST", kGroup, "accuracy 1\nspeed 2\n");
  EXPECT_EQ(Send("DELETE", kGroup).status, 202);
  EXPECT_THAT(Shown(), IsEmpty());
  EXPECT_EQ(Send("DELETE", kGroup).status, 202) << "there is nothing left to end";
  Send("POST", kGroup, "accuracy 4\n");
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 4)));
}

TEST_F(PushDoorTest, AGroupThatIsNotPushedExpires) {
  Send("POST", kGroup, "accuracy 1\n");
  monotonic_ += absl::Minutes(59);
  Send("POST", "/metrics/job/vision/shard/4", "other 5\n");
  door_.EndDue();
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 1), Pair("other", 5)));
  monotonic_ += absl::Minutes(1);
  door_.EndDue();
  EXPECT_THAT(Shown(), ElementsAre(Pair("other", 5)));
  EXPECT_THAT(Stored("accuracy"), ElementsAre(Pair(0, 1)));
}

TEST_F(PushDoorTest, TakesGzipAndOpenMetrics) {
  EXPECT_EQ(Send("POST", kGroup, Gzip("accuracy 1\n"), {{"content-encoding", "gzip"}}).status, 200);
  EXPECT_EQ(Send("POST", kGroup, "# TYPE rows counter\nrows_total 5\n# EOF\n",
                 {{"content-type", "application/openmetrics-text; version=1.0.0"}})
                .status,
            200);
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 1), Pair("rows_total", 5)));
}

TEST_F(PushDoorTest, TakesProtobuf) {
  const std::vector<std::pair<std::string, std::string>> headers = {
      {"content-type",
       "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
       "encoding=delimited"}};
  // MetricFamily{name: "accuracy", type: GAUGE, metric: {gauge: {value: 1}}}
  const std::string family(
      "\x19\x0a\x08"
      "accuracy\x18\x01\x22\x0b\x12\x09\x09\0\0\0\0\0\0\xf0\x3f",
      26);
  EXPECT_EQ(Send("POST", kGroup, family, headers).status, 200);
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 1)));
  EXPECT_EQ(Send("POST", kGroup, family.substr(1), headers).status, 400);
}

TEST_F(PushDoorTest, OtherFormsAreRefusedWith415) {
  const auto answer =
      Send("POST", kGroup, "x",
           {{"content-type",
             "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
             "encoding=text"}});
  EXPECT_EQ(answer.status, 415);
  EXPECT_THAT(answer.body, HasSubstr("encoding=delimited"));
  EXPECT_EQ(Send("POST", kGroup, "a 1\n", {{"content-encoding", "zstd"}}).status, 415);
}

TEST_F(PushDoorTest, WhatIsWrongIsRefusedAndLosesNothing) {
  Send("POST", kGroup, "accuracy 1\n");
  const size_t rows = StoredRows();
  for (const char* body : {"accuracy one\n", "accuracy 1 1700000000000\n", "push_time_seconds 1\n",
                           "a 1\na 1\n", "a{b=\"c} 1\n"}) {
    const auto answer = Send("PUT", kGroup, body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_FALSE(answer.body.empty());
  }
  EXPECT_EQ(Send("DELETE", "/metrics/job/vision/shard").status, 400);
  EXPECT_EQ(Send("PUT", kGroup, "accuracy 1\n", {{"content-encoding", "gzip"}}).status, 400);
  EXPECT_EQ(
      Send("PUT", kGroup, Gzip(std::string(2 << 20, 'a')), {{"content-encoding", "gzip"}}).status,
      413);
  EXPECT_EQ(StoredRows(), rows);
  EXPECT_THAT(Shown(), ElementsAre(Pair("accuracy", 1)));
}

TEST_F(PushDoorTest, PagesOfOtherSitesMayNotPush) {
  EXPECT_EQ(Send("POST", kGroup, "accuracy 1\n", {{"sec-fetch-site", "cross-site"}}).status, 403);
  EXPECT_EQ(Send("POST", kGroup, "accuracy 1\n", {{"sec-fetch-site", "none"}}).status, 200);
}

}  // namespace
}  // namespace tacho::server::interop
