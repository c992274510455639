#include <gtest/gtest.h>

#include <string>

#include "server/http/content.h"

namespace tacho::server::http {
namespace {

TEST(AcceptsPrometheusText, OfEveryPrometheusThatScrapes) {
  const char* const headers[] = {
      // 2.42
      "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;"
      "q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
      // 3.0 and later
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
      "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
      "escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,/;q=0.1",
      // With native histograms
      "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
      "q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
      "*/*",  // curl
      "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/plain",
      "TEXT/PLAIN; Version=\"0.0.4\"; charset=utf-8", "text/*;q=0.001", "", "  ", ","};
  for (const char* header : headers) EXPECT_TRUE(AcceptsPrometheusText(header)) << header;
}

TEST(AcceptsPrometheusText, NotOfAClientThatWantsOnlySomethingElse) {
  const char* const headers[] = {"application/openmetrics-text;version=1.0.0",
                                 "application/json",
                                 "text/plain;version=1.0.0",
                                 "text/plain;q=0",
                                 "*/*;q=0",
                                 "text/html",
                                 "text/plain;version=0.0.4;q=0.0,*/*",
                                 "application/vnd.google.protobuf"};
  for (const char* header : headers) EXPECT_FALSE(AcceptsPrometheusText(header)) << header;
}

TEST(AcceptsPrometheusText, TheMostSpecificRangeDecides) {
  EXPECT_FALSE(AcceptsPrometheusText("*/*;q=1, text/plain;q=0"));
  EXPECT_TRUE(AcceptsPrometheusText("*/*;q=0, text/plain;q=0.1"));
  EXPECT_FALSE(AcceptsPrometheusText("text/*;q=0, */*;q=1"));
  EXPECT_TRUE(AcceptsPrometheusText("text/plain;q=0, text/plain;version=0.0.4"));
}

TEST(AcceptsPrometheusText, ReadsABrokenQAsOne) {
  for (const char* q : {"x", "", "nan", "-1", "2", "inf", "1e999"}) {
    EXPECT_TRUE(AcceptsPrometheusText("text/plain;q=" + std::string(q))) << q;
  }
}

TEST(AcceptsGzip, ReadsQValues) {
  for (const char* header :
       {"gzip", "deflate, gzip;q=1.0, *;q=0.5", "*", "GZIP", "x-gzip", "br, gzip;q=0.001"}) {
    EXPECT_TRUE(AcceptsGzip(header)) << header;
  }
  for (const char* header : {"", "identity", "gzip;q=0", "br", "*;q=0", "gzip;q=0, *", "notgzip"}) {
    EXPECT_FALSE(AcceptsGzip(header)) << header;
  }
}

}  // namespace
}  // namespace tacho::server::http
