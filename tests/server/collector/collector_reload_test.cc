// A running collector takes a configuration anew, all of it or nothing.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "rocksdb/env.h"
#include "server/collector.h"
#include "tests/support/http_talk.h"

namespace tacho::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CollectorReloadTest : public testing::Test {
 protected:
  CollectorReloadTest() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    CollectorWorld world;
    world.env = env_.get();
    world.now = [] { return absl::FromUnixSeconds(1'000'000); };
    world.read_config = [this] { return next_; };
    log::LogOptions options;
    options.write = [this](log::Level, absl::string_view line) { absl::StrAppend(&log_, line); };
    world.log = log::Log(std::move(options));
    auto collector = Collector::Start(*Read(""), std::move(world));
    EXPECT_TRUE(collector.ok()) << collector.status();
    if (!collector.ok()) std::abort();
    collector_ = *std::move(collector);
  }

  static absl::StatusOr<config::v1::Collector> Read(absl::string_view more) {
    config::v1::Collector config;
    absl::Status read =
        config::ParseYaml(absl::StrCat("listen: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\n"
                                       "storage: {path: /data}\nadmin: {listen: 'off'}\n",
                                       more),
                          "c.yaml", &config);
    if (!read.ok()) return read;
    return config;
  }

  absl::Status Reload(absl::StatusOr<config::v1::Collector> next) {
    next_ = std::move(next);
    return collector_->Reload("test");
  }

  std::string Metrics() {
    return testing_support::BodyOf(testing_support::Get(collector_->http_port(), "/metrics"));
  }

  std::unique_ptr<rocksdb::Env> env_;
  absl::StatusOr<config::v1::Collector> next_;
  std::string log_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(CollectorReloadTest, StartCountsAsSuccess) {
  EXPECT_THAT(Metrics(),
              AllOf(HasSubstr("\ntacho_config_last_reload_successful 1\n"),
                    HasSubstr("\ntacho_config_last_reload_success_timestamp_seconds 1000000\n"),
                    HasSubstr("\ntacho_config_reloads_total{result=\"success\"} 0\n")));
}

TEST_F(CollectorReloadTest, SuccessIsCounted) {
  EXPECT_TRUE(Reload(Read("metrics: {max_series: 1}\n")).ok());
  EXPECT_THAT(Metrics(), HasSubstr("\ntacho_config_reloads_total{result=\"success\"} 1\n"));
  EXPECT_THAT(log_, HasSubstr("msg=\"the configuration was read again\" asked_by=test\n"));
}

TEST_F(CollectorReloadTest, LogLevelIsInForceAtOnce) {
  ASSERT_TRUE(Reload(Read("log: {level: error}\n")).ok());
  log_.clear();
  ASSERT_TRUE(Reload(Read("log: {level: error}\n")).ok());
  EXPECT_EQ(log_, "") << "that it was read is no error";
  EXPECT_FALSE(Reload(Read("log: {format: json}\n")).ok()) << "needs a restart";
  EXPECT_THAT(log_, HasSubstr("log.format: changed, which needs a restart"));
}

TEST_F(CollectorReloadTest, FileWithAMistakeChangesNothing) {
  const absl::Status refused = Reload(Read("metrics: {max_series: 1, stalenes: 1m}\n"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), AllOf(HasSubstr("c.yaml:4"), HasSubstr("staleness")));
  EXPECT_THAT(Metrics(), AllOf(HasSubstr("\ntacho_config_last_reload_successful 0\n"),
                               HasSubstr("\ntacho_config_reloads_total{result=\"failure\"} 1\n")));
  EXPECT_TRUE(Reload(Read("")).ok());
  EXPECT_THAT(Metrics(), HasSubstr("\ntacho_config_last_reload_successful 1\n"));
}

TEST_F(CollectorReloadTest, LimitsAreReloaded) {
  EXPECT_THAT(Metrics(), HasSubstr("\ntacho_limit{limit=\"series\"} 10000000\n"));
  EXPECT_TRUE(Reload(Read("limits: {series: 7, rules: [{job: 'a.*'}]}\n")).ok());
  EXPECT_THAT(Metrics(), AllOf(HasSubstr("\ntacho_limit{limit=\"series\"} 7\n"),
                               HasSubstr("\ntacho_limit_headroom_ratio{limit=\"series\"} 1\n")));
}

TEST_F(CollectorReloadTest, WhatGrpcFixesAtTheStartIsSaidToNeedARestart) {
  EXPECT_TRUE(Reload(Read("ingest: {max_message_bytes: 1MiB, max_rows_per_batch: 7}\n")).ok());
  EXPECT_THAT(log_, Not(HasSubstr("needs a restart")));
  EXPECT_TRUE(Reload(Read("ingest: {max_message_bytes: 8MiB}\nquery: {timeout: 1s}\n")).ok());
  EXPECT_THAT(log_, HasSubstr("level=warn msg=\"ingest.max_message_bytes above that of the start "
                              "needs a restart\" asked=8388608 in_force=4194304\n"));
}

TEST_F(CollectorReloadTest, KeysThatNeedARestartAreNamed) {
  auto changed = Read("metrics: {max_series: 1}\n");
  changed->mutable_storage()->set_seal_rows(64);
  changed->mutable_listen()->set_grpc("127.0.0.1:1");
  const absl::Status fixed = Reload(changed);
  EXPECT_EQ(fixed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(fixed.message()), HasSubstr("listen.grpc, storage.seal_rows"));
  EXPECT_THAT(Metrics(), HasSubstr("\ntacho_config_last_reload_successful 0\n"));
}

}  // namespace
}  // namespace tacho::server
