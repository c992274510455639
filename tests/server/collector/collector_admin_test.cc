// tacho.v1.Admin of a whole collector in one process, on a real file system.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/config/yaml_config.h"
#include "server/collector.h"
#include "server/errors/error_table.h"
#include "server/security/tokens.h"
#include "tacho/v1/admin.grpc.pb.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/support/certificates.h"
#include "tests/support/http_talk.h"
#include "tests/support/patient_context.h"

namespace tacho::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class CollectorAdminTest : public testing::Test {
 protected:
  CollectorAdminTest() : root_(testing::TempDir() + "admin." + std::to_string(::getpid())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    EXPECT_TRUE(
        config::ParseYaml(absl::StrCat("listen: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\n",
                                       "storage: {path: ", root_, "/data, retention: 0s}\n",
                                       "admin: {snapshot_directory: ", root_, "/snapshots}\n"),
                          "test", &config_)
            .ok());
  }
  ~CollectorAdminTest() override {
    collector_.reset();
    fs::remove_all(root_);
  }

  absl::Status Start() {
    CollectorWorld world;
    world.now = [this] { return now_; };
    world.monotonic = world.now;
    world.read_config = [this] { return next_; };
    log::LogOptions options;
    options.now = world.now;
    options.write = [this](log::Level, absl::string_view line) { absl::StrAppend(&log_, line); };
    world.log = log::Log(std::move(options));
    auto collector = Collector::Start(config_, std::move(world));
    if (!collector.ok()) return collector.status();
    collector_ = *std::move(collector);
    return absl::OkStatus();
  }
  std::string Socket() const { return root_ + "/data/admin.sock"; }
  std::unique_ptr<v1::Admin::Stub> Admin() const {
    return v1::Admin::NewStub(
        grpc::CreateChannel("unix:" + Socket(), grpc::InsecureChannelCredentials()));
  }
  std::shared_ptr<grpc::Channel> Public() const {
    return grpc::CreateChannel("127.0.0.1:" + std::to_string(collector_->grpc_port()),
                               grpc::InsecureChannelCredentials());
  }
  v1::GetStatsResponse Stats() const {
    PatientContext context;
    v1::GetStatsResponse stats;
    const grpc::Status status = Admin()->GetStats(&context, {}, &stats);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return stats;
  }
  grpc::Status Snapshot(const std::string& name, v1::SnapshotResponse* made) const {
    PatientContext context;
    v1::SnapshotRequest request;
    request.set_name(name);
    return Admin()->Snapshot(&context, request, made);
  }
  grpc::Status Snapshot(const std::string& name) const {
    v1::SnapshotResponse made;
    return Snapshot(name, &made);
  }
  grpc::Status SetLogLevel(const std::string& level, absl::Duration duration) const {
    PatientContext context;
    v1::SetLogLevelRequest request;
    request.set_level(level);
    request.set_duration_ns(absl::ToInt64Nanoseconds(duration));
    v1::SetLogLevelResponse response;
    return Admin()->SetLogLevel(&context, request, &response);
  }
  std::vector<std::string> Snapshots() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root_ + "/snapshots")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string root_;
  config::v1::Collector config_;
  absl::StatusOr<config::v1::Collector> next_;
  absl::Time now_ = absl::FromUnixSeconds(1'763'740'800);
  std::string log_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(CollectorAdminTest, SocketIsForItsOwnerAloneAndGoesWithTheCollector) {
  ASSERT_TRUE(Start().ok());
  struct stat status {};
  ASSERT_EQ(::stat(Socket().c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  for (const auto& entry : fs::directory_iterator(root_ + "/data")) {
    EXPECT_NE(entry.path().filename().string().substr(0, 7), ".admin-") << "staging is left";
  }
  EXPECT_TRUE(collector_->Drain().ok());
  EXPECT_FALSE(fs::exists(Socket()));
}

TEST_F(CollectorAdminTest, PublicPortDoesNotServeIt) {
  ASSERT_TRUE(Start().ok());
  const auto stub = v1::Admin::NewStub(Public());
  PatientContext context;
  v1::DrainResponse response;
  EXPECT_EQ(stub->Drain(&context, {}, &response).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_FALSE(Stats().draining());
}

TEST_F(CollectorAdminTest, SocketOfAKilledCollectorIsReplacedAndALiveOneIsNot) {
  fs::create_directories(root_ + "/data");
  const int dead = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, Socket().c_str());  // NOLINT
  ASSERT_EQ(::bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(dead);
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(Stats().pid(), static_cast<uint32_t>(::getpid()));

  config_.mutable_admin()->set_listen("unix:" + Socket());
  config_.mutable_storage()->set_path(root_ + "/other");
  const auto first = std::move(collector_);
  const absl::Status second = Start();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.message()), HasSubstr("another process uses it"));
  EXPECT_TRUE(fs::exists(Socket()));
}

TEST_F(CollectorAdminTest, FileInThePlaceOfTheSocketIsLeftAlone) {
  std::ofstream(root_ + "/precious") << "bytes";
  config_.mutable_admin()->set_listen("unix:" + root_ + "/precious");
  EXPECT_EQ(Start().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(fs::file_size(root_ + "/precious"), 5u);
}

TEST_F(CollectorAdminTest, AddressesThatOthersReachAreRefused) {
  for (const std::string address :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:7413", "host:7413", "unix:", "nonsense"}) {
    config_.mutable_admin()->set_listen(address);
    const absl::Status refused = Start();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("admin.listen"));
  }
  config_.mutable_admin()->set_listen("unix:/" + std::string(100, 'x'));
  EXPECT_EQ(Start().code(), absl::StatusCode::kInvalidArgument) << "too long for a socket";
  config_.mutable_admin()->set_listen("127.0.0.1:0");
  EXPECT_TRUE(Start().ok());
}

TEST_F(CollectorAdminTest, OnAPortTheRoleAdminIsNeeded) {
  const TestFiles files;
  std::string tokens = "tokens:\n";
  for (const std::string name : {"admin", "read", "write"}) {
    absl::StrAppend(&tokens, "  - {name: ", name, ", roles: [", name,
                    "], jobs: '.*', sha256: ", absl::BytesToHexString(security::Sha256(name)),
                    "}\n");
  }
  config_.mutable_auth()->set_tokens_file(files.Write("tokens.yaml", tokens));
  config_.mutable_admin()->set_listen("127.0.0.1:0");
  ASSERT_TRUE(Start().ok());
  ASSERT_GT(collector_->admin_port(), 0);
  const auto stub = v1::Admin::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", collector_->admin_port()), grpc::InsecureChannelCredentials()));
  const auto drain = [&stub](const std::string& token) {
    PatientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::DrainResponse response;
    return stub->Drain(&context, {}, &response).error_code();
  };
  EXPECT_EQ(drain(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(drain("stranger"), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(drain("read"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(drain("write"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(log_, HasSubstr("msg=\"admin call refused\" method=Drain peer="));
  EXPECT_THAT(log_, Not(HasSubstr("msg=draining")));
  EXPECT_EQ(drain("admin"), grpc::StatusCode::OK);
}

TEST_F(CollectorAdminTest, WhatDrainsIsNotReadyAndSaysWhenToComeBack) {
  ASSERT_TRUE(Start().ok());
  const auto ready = [this] { return testing_support::Get(collector_->http_port(), "/readyz"); };
  EXPECT_THAT(ready(), StartsWith("HTTP/1.1 200 "));
  PatientContext context;
  v1::DrainResponse drained;
  ASSERT_TRUE(Admin()->Drain(&context, {}, &drained).ok());
  const std::string answer = ready();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(testing_support::BodyOf(answer), HasSubstr("draining"));
  const errors::ErrorRow& row = errors::RowOf(errors::ErrorOf(errors::Failure::kDraining, ""));
  constexpr char kRetryAfter[] = "Retry-After: ";
  ASSERT_THAT(answer, HasSubstr(kRetryAfter));
  const int seconds = std::stoi(answer.substr(answer.find(kRetryAfter) + sizeof(kRetryAfter) - 1));
  EXPECT_GE(absl::Seconds(seconds), row.retry_after);
  EXPECT_LE(absl::Seconds(seconds), row.retry_after + row.retry_spread);
}

TEST_F(CollectorAdminTest, StatsSayHowItDoes) {
  ASSERT_TRUE(Start().ok());
  now_ += absl::Minutes(1);
  const v1::GetStatsResponse stats = Stats();
  EXPECT_EQ(stats.not_ready(), "");
  EXPECT_EQ(stats.now_unix_ns() - stats.started_unix_ns(), 60'000'000'000);
  EXPECT_EQ(stats.log().level(), "info");
  EXPECT_EQ(stats.reload().done(), 0u);
  EXPECT_EQ(stats.reload().in_force_unix_ns(), stats.started_unix_ns());
  EXPECT_FALSE(stats.has_last_snapshot());
}

TEST_F(CollectorAdminTest, LogLevelFallsBackByItself) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(SetLogLevel("debug", absl::Minutes(10)).ok());
  EXPECT_EQ(Stats().log().level(), "debug");
  EXPECT_EQ(Stats().log().falls_back_unix_ns(), absl::ToUnixNanos(now_ + absl::Minutes(10)));
  now_ += absl::Minutes(10);
  EXPECT_EQ(Stats().log().level(), "info");
  ASSERT_TRUE(SetLogLevel("error", absl::ZeroDuration()).ok());
  now_ += absl::Hours(1000);
  EXPECT_EQ(Stats().log().level(), "error");
  EXPECT_EQ(Stats().log().falls_back_unix_ns(), 0);
  ASSERT_TRUE(SetLogLevel("", absl::ZeroDuration()).ok());
  EXPECT_EQ(Stats().log().level(), "info");
  EXPECT_EQ(SetLogLevel("loud", absl::ZeroDuration()).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(SetLogLevel("info", -absl::Seconds(1)).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CollectorAdminTest, ReloadSaysWhatIsWrong) {
  ASSERT_TRUE(Start().ok());
  const auto reload = [this] {
    PatientContext context;
    v1::ReloadResponse response;
    return Admin()->Reload(&context, {}, &response);
  };
  next_ = absl::InvalidArgumentError("c.yaml:3: no such key");
  EXPECT_EQ(reload().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Stats().reload().last_refusal(), "c.yaml:3: no such key");
  EXPECT_EQ(Stats().reload().refused(), 1u);
  next_ = config_;
  EXPECT_TRUE(reload().ok());
  EXPECT_EQ(Stats().reload().last_refusal(), "");
  EXPECT_EQ(Stats().reload().done(), 1u);
  EXPECT_THAT(log_, HasSubstr("msg=\"admin call\" method=Reload"));
}

TEST_F(CollectorAdminTest, SnapshotHasItsNameOrThatOfTheTime) {
  ASSERT_TRUE(Start().ok());
  v1::SnapshotResponse made;
  ASSERT_TRUE(Snapshot("before-upgrade.1", &made).ok());
  EXPECT_EQ(made.path(), root_ + "/snapshots/before-upgrade.1");
  EXPECT_GT(made.files(), 3u);
  EXPECT_GT(made.bytes(), 0u);
  ASSERT_TRUE(Snapshot("", &made).ok());
  EXPECT_EQ(made.name(), "20251121T160000Z");
  EXPECT_THAT(Snapshots(), UnorderedElementsAre("before-upgrade.1", "20251121T160000Z"));
  EXPECT_EQ(Stats().last_snapshot().name(), "20251121T160000Z");
  struct stat status {};
  ASSERT_EQ(::stat((root_ + "/snapshots").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CollectorAdminTest, NoNameLeadsOutOfTheDirectory) {
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Snapshot("good").ok());
  const std::vector<std::string> names = {"..",
                                          ".",
                                          "../x",
                                          "a/b",
                                          "/tmp/x",
                                          "a/../../x",
                                          ".hidden",
                                          ".partial-x",
                                          "a b",
                                          "a\nb",
                                          std::string("a\0b", 3),
                                          "ä",
                                          "~",
                                          "$(id)",
                                          "a;b",
                                          "-",
                                          std::string(101, 'a')};
  for (const std::string& name : names) {
    if (name == "-") continue;  // Odd, but one harmless component.
    EXPECT_EQ(Snapshot(name).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
  }
  EXPECT_THAT(Snapshots(), UnorderedElementsAre("good"));
  EXPECT_FALSE(fs::exists(root_ + "/x"));
}

TEST_F(CollectorAdminTest, WhatIsThereIsNeverReplaced) {
  ASSERT_TRUE(Start().ok());
  fs::create_directories(root_ + "/snapshots");
  fs::create_directory(root_ + "/elsewhere");
  fs::create_symlink(root_ + "/elsewhere", root_ + "/snapshots/link");
  fs::create_symlink(root_ + "/nowhere", root_ + "/snapshots/dangling");
  fs::create_directory(root_ + "/snapshots/empty");
  ASSERT_TRUE(Snapshot("made").ok());
  for (const char* name : {"link", "dangling", "empty", "made"}) {
    EXPECT_EQ(Snapshot(name).error_code(), grpc::StatusCode::ALREADY_EXISTS) << name;
  }
  EXPECT_TRUE(fs::is_empty(root_ + "/elsewhere"));
  EXPECT_FALSE(fs::exists(root_ + "/nowhere"));
}

TEST_F(CollectorAdminTest, WhatAKilledCollectorLeftIsRemoved) {
  ASSERT_TRUE(Start().ok());
  fs::create_directories(root_ + "/snapshots/.partial-old");
  std::ofstream(root_ + "/snapshots/.partial-old/000012.sst") << "half";
  fs::create_directories(root_ + "/snapshots/.partial-old.tmp");
  ASSERT_TRUE(Snapshot("new").ok());
  EXPECT_THAT(Snapshots(), UnorderedElementsAre("new"));
}

TEST_F(CollectorAdminTest, SnapshotWithoutADirectoryNamesTheKey) {
  config_.mutable_admin()->clear_snapshot_directory();
  ASSERT_TRUE(Start().ok());
  const grpc::Status refused = Snapshot("x");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("admin.snapshot_directory"));
}

TEST_F(CollectorAdminTest, DrainEndsStreamsWhenTheirRowsAreDurableAndQueriesGoOn) {
  ASSERT_TRUE(Start().ok());
  const auto ingest = v1::Ingest::NewStub(Public());
  PatientContext context;
  auto stream = ingest->Stream(&context);
  stream->Write(ingest::HelloMessage());
  stream->Write(ingest::LayoutMessage());
  stream->Write(ingest::BatchMessage(1));
  v1::ServerMessage answer;
  while (stream->Read(&answer) && answer.ack().durable_sequence() < 1) {
  }
  EXPECT_EQ(Stats().streams(), 1u);

  PatientContext draining;
  v1::DrainResponse drained;
  const grpc::Status status = Admin()->Drain(&draining, {}, &drained);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(drained.streams(), 1u);
  EXPECT_EQ(drained.streams_left(), 0u);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Stats().draining());
  EXPECT_EQ(Stats().not_ready(), "draining");
  EXPECT_EQ(Stats().store().rows_appended(), 1u);

  PatientContext again;
  auto refused = ingest->Stream(&again);
  refused->Write(ingest::HelloMessage());
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Snapshot("drained").ok());
  PatientContext repeated;
  EXPECT_TRUE(Admin()->Drain(&repeated, {}, &drained).ok()) << "no mistake";
  EXPECT_TRUE(collector_->Drain().ok());
}

TEST_F(CollectorAdminTest, WaitOfADrainIsBounded) {
  ASSERT_TRUE(Start().ok());
  for (const absl::Duration timeout : {-absl::Seconds(1), absl::Minutes(11)}) {
    PatientContext context;
    v1::DrainRequest request;
    request.set_timeout_ns(absl::ToInt64Nanoseconds(timeout));
    v1::DrainResponse response;
    EXPECT_EQ(Admin()->Drain(&context, request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_FALSE(Stats().draining());
}

}  // namespace
}  // namespace tacho::server
