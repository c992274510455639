// What clients of both versions are answered.
#include "server/interop/influx_door.h"

#include <zlib.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/bridge/recorded_responder.h"
#include "tests/server/interop/intake_fixture.h"

namespace tacho::server::interop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;
using Version = InfluxDoor::Version;

constexpr int64_t kNowMs = ingest::kNowNs / 1'000'000;

class InfluxDoorTest : public IntakeTest {
 protected:
  static http::HttpRequest Request(const std::string& body, const std::string& precision = "ms") {
    http::HttpRequest request;
    request.method = "POST";
    request.query = {{"db", "telegraf"}, {"precision", precision}};
    request.body = body;
    return request;
  }
  http::HttpResponse Send(const http::HttpRequest& request, Version version = Version::k2) {
    const auto responder = std::make_shared<bridge::RecordedResponder>();
    door_.Handle(version, request, responder);
    return responder->answer();
  }
  http::HttpResponse Post(const std::string& body, Version version = Version::k2) {
    return Send(Request(body), version);
  }
  double Counted(const std::string& name) {
    for (const auto& family : registry_.Collect()) {
      if (family.name == name) return family.metric.at(0).counter.value;
    }
    return -1;
  }
  static std::string Header(const http::HttpResponse& response, absl::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }
  // A line of the job "vision", `ms` after kNowNs.
  static std::string Line(const std::string& measurement, const std::string& fields,
                          int64_t ms = 0) {
    return absl::StrCat(measurement, ",host=h1,job=vision ", fields, " ", kNowMs + ms, "\n");
  }
  static std::string Gzip(const std::string& text) {
    z_stream stream = {};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
  }

  InfluxDoor door_{{.intake = intake_.get(),
                    .guard = {},
                    .max_request_bytes = 1 << 20,
                    .registry = &registry_,
                    .now = now_}};
};

TEST_F(InfluxDoorTest, StoredLinesAreAnswered204) {
  EXPECT_EQ(Post(Line("loss", "value=0.25"), Version::k1).status, 204);
  EXPECT_EQ(Post(Line("loss", "value=0.5", 1), Version::k2).status, 204);
  EXPECT_THAT(Stored("loss"), ElementsAre(Pair(0, 0.25), Pair(1, 0.5)));
  EXPECT_EQ(Counted("tacho_interop_samples_total"), 2);
  EXPECT_EQ(Post("").status, 204);
}

TEST_F(InfluxDoorTest, TextsAreCountedAndNoError) {
  EXPECT_EQ(Post(Line("run", "name=\"a\",step=1")).status, 204);
  EXPECT_THAT(Stored("run_step"), ElementsAre(Pair(0, 1)));
  EXPECT_EQ(Counted("tacho_interop_strings_total"), 1);
}

TEST_F(InfluxDoorTest, ALineWithoutATimeIsOfNow) {
  EXPECT_EQ(Post("loss,job=vision value=1").status, 204);
  EXPECT_THAT(Stored("loss"), ElementsAre(Pair(0, 1)));
}

TEST_F(InfluxDoorTest, EachVersionHasItsPrecisions) {
  const auto post = [&](Version version, const std::string& precision, int64_t unit_ns) {
    const std::string line = absl::StrCat("m,job=vision v=1 ", ingest::kNowNs / unit_ns, "\n");
    return Send(Request(line, precision), version).status;
  };
  const std::pair<const char*, int64_t> both[] = {
      {"", 1}, {"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  for (const auto& [name, unit_ns] : both) {
    EXPECT_EQ(post(Version::k1, name, unit_ns), 204) << name;
    EXPECT_EQ(post(Version::k2, name, unit_ns), 204) << name;
  }
  const std::pair<const char*, int64_t> first[] = {
      {"n", 1}, {"u", 1'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};
  for (const auto& [name, unit_ns] : first) {
    EXPECT_EQ(post(Version::k1, name, unit_ns), 204) << name;
    EXPECT_EQ(post(Version::k2, name, unit_ns), 400) << name;
  }
  EXPECT_EQ(post(Version::k1, "d", 1), 400);
  // A wrong unit does not go unnoticed.
  EXPECT_EQ(post(Version::k2, "s", 1'000'000), 400);
}

TEST_F(InfluxDoorTest, ABadLineIsNamedAndTheOthersAreStored) {
  const std::string body = Line("a", "v=1") + Line("b", "v=oops") + Line("c", "v=3") + "bad\n";
  auto response = Post(body);
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(
      response.body,
      StartsWith("{\"code\":\"invalid\",\"message\":\"partial write: unable to parse line 2, "));
  EXPECT_THAT(response.body, HasSubstr("the field 'v' has the value 'oops'"));
  EXPECT_THAT(response.body, HasSubstr("dropped=2 (2 lines, and 0 samples of others)"));
  EXPECT_EQ(response.content_type, "application/json; charset=utf-8");
  EXPECT_THAT(Stored("a_v"), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Stored("c_v"), ElementsAre(Pair(0, 3)));
  response = Post(body, Version::k1);
  EXPECT_THAT(response.body, StartsWith("{\"error\":\"partial write: unable to parse line 2, "));
}

TEST_F(InfluxDoorTest, WithoutAGoodLineItIsNoPartialWrite) {
  const auto response = Post("\"bad\n");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("\"message\":\"unable to parse line 1, '\\\"bad'"));
}

TEST_F(InfluxDoorTest, WhatTheStoreRefusesIsAPartialWriteToo) {
  const auto response = Post(Line("a", "v=1") + Line("a", "v=2", -kNowMs + 1));
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("partial write: "));
  EXPECT_THAT(response.body, HasSubstr("storage.retention"));
  EXPECT_THAT(response.body, HasSubstr("dropped=1 (0 lines, and 1 samples of others)"));
  EXPECT_THAT(Stored("a_v"), ElementsAre(Pair(0, 1)));
}

TEST_F(InfluxDoorTest, GzipIsUnpackedAndOtherEncodingsAreRefused) {
  http::HttpRequest request = Request(Gzip(Line("loss", "value=0.25")));
  request.headers = {{"content-encoding", "gzip"}};
  EXPECT_EQ(Send(request).status, 204);
  EXPECT_THAT(Stored("loss"), ElementsAre(Pair(0, 0.25)));
  request.body = "no gzip";
  EXPECT_EQ(Send(request).status, 400);
  request.headers = {{"content-encoding", "br"}};
  EXPECT_EQ(Send(request).status, 415);
}

TEST_F(InfluxDoorTest, WhatUnpacksToTooMuchIsRefused) {
  http::HttpRequest request = Request(Gzip(std::string(2 << 20, '#')));
  request.headers = {{"content-encoding", "gzip"}};
  const auto response = Send(request);
  EXPECT_EQ(response.status, 413);
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"request too large\""));
  EXPECT_THAT(response.body, HasSubstr("interop.max_request_bytes"));
}

TEST_F(InfluxDoorTest, WhatTimeHealsIs503WithADelay) {
  admission_.StartDraining();
  const auto response = Post(Line("loss", "value=1"));
  EXPECT_EQ(response.status, 503);
  EXPECT_NE(Header(response, "Retry-After"), "");
  EXPECT_THAT(response.body, HasSubstr("\"code\":\"unavailable\""));
}

// A form on any page could make the browser of somebody who may write send one.
TEST_F(InfluxDoorTest, PagesInBrowsersMayNotWrite) {
  for (const char* name : {"origin", "sec-fetch-site"}) {
    http::HttpRequest request = Request(Line("loss", "value=1"));
    request.headers = {{name, "null"}};
    EXPECT_EQ(Send(request).status, 403) << name;
  }
  EXPECT_EQ(StoredRows(), 0u);
}

TEST_F(InfluxDoorTest, APingIsAnsweredWithAVersion) {
  std::vector<std::string> paths;
  for (const http::Route& route : door_.Routes()) {
    paths.push_back(route.path);
    if (route.path != "/ping") {
      EXPECT_EQ(route.methods, http::Methods::kPost);
      continue;
    }
    EXPECT_EQ(route.methods, http::Methods::kGet);
    const auto response = route.handler({});
    EXPECT_EQ(response.status, 204);
    EXPECT_NE(Header(response, "X-Influxdb-Version"), "");
  }
  EXPECT_THAT(paths, ElementsAre("/write", "/api/v2/write", "/ping"));
}

}  // namespace
}  // namespace tacho::server::interop
