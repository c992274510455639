// Each row of the error table as a plain gRPC client sees it, of a whole collector.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "interop/google_rpc.pb.h"
#include "proto/config/yaml_config.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "server/collector.h"
#include "server/errors/error_table.h"
#include "server/security/tokens.h"
#include "storage/codec/keys.h"
#include "tacho/v1/ingest.grpc.pb.h"
#include "tacho/v1/query.grpc.pb.h"
#include "tests/server/ingest/ingest_messages.h"
#include "tests/support/call_bytes.h"
#include "tests/support/certificates.h"
#include "tests/support/faulty_env.h"
#include "tests/support/patient_context.h"

namespace tacho::server::errors {
namespace {

using Messages = std::vector<v1::ClientMessage>;
using grpc::StatusCode;

struct Details {
  std::optional<absl::Duration> retry;
  std::string reason;
  std::string field;
};

Details DetailsOf(const grpc::Status& status) {
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  Details details;
  for (const auto& any : rich.details()) {
    google::rpc::RetryInfo retry;
    google::rpc::ErrorInfo error;
    google::rpc::BadRequest bad;
    if (any.UnpackTo(&retry)) {
      details.retry = absl::Seconds(retry.retry_delay().seconds()) +
                      absl::Nanoseconds(retry.retry_delay().nanos());
    }
    if (any.UnpackTo(&error)) details.reason = error.reason();
    if (any.UnpackTo(&bad)) details.field = bad.field_violations(0).field();
  }
  return details;
}

class ErrorRowsTest : public ::testing::Test {
 protected:
  ErrorRowsTest() {
    EXPECT_TRUE(config::ParseYaml("listen: {grpc: '127.0.0.1:0', http: '127.0.0.1:0'}\n"
                                  "storage: {path: /data, retention: 0s}\n"
                                  "ingest: {max_message_bytes: 64KiB, max_series_per_layout: 8}\n",
                                  "test", &config_)
                    .ok());
  }
  ~ErrorRowsTest() override {
    streams_.clear();
    env_.Clear();
  }

  void Start() {
    CollectorWorld world;
    world.env = &env_;
    auto collector = Collector::Start(config_, std::move(world));
    ASSERT_TRUE(collector.ok()) << collector.status();
    collector_ = *std::move(collector);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(collector_->grpc_port()),
                                   grpc::InsecureChannelCredentials());
  }

  struct Stream {
    PatientContext context;
    std::unique_ptr<v1::Ingest::Stub> stub;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ClientMessage, v1::ServerMessage>> call;
    bool finished = false;
    ~Stream() {
      context.TryCancel();
      if (!finished) call->Finish();
    }
  };
  // A stream that stays open, after its Welcome.
  Stream* Open(const v1::ClientMessage& hello) {
    auto stream = Begin({hello});
    v1::ServerMessage welcome;
    EXPECT_TRUE(stream->call->Read(&welcome));
    streams_.push_back(std::move(stream));
    return streams_.back().get();
  }
  std::unique_ptr<Stream> Begin(const Messages& messages) {
    auto stream = std::make_unique<Stream>();
    stream->stub = v1::Ingest::NewStub(channel_);
    stream->call = stream->stub->Stream(&stream->context);
    for (const auto& message : messages) stream->call->Write(message);
    return stream;
  }
  static grpc::Status EndOf(Stream* stream) {
    for (v1::ServerMessage answer; stream->call->Read(&answer);) {
    }
    stream->finished = true;
    return stream->call->Finish();
  }
  grpc::Status Send(const Messages& messages) {
    Start();
    const auto stream = Begin(messages);
    return EndOf(stream.get());
  }

  // Lets in only those of this file, written as its entries are.
  void LetIn(const std::string& entries) {
    config_.mutable_auth()->set_tokens_file(files_.Write("tokens.yaml", "tokens:\n" + entries));
  }
  static std::string Entry(const std::string& token, const std::string& rest) {
    return absl::StrCat("  - {name: ", token,
                        ", sha256: ", absl::BytesToHexString(security::Sha256(token)), ", ", rest,
                        "}\n");
  }
  grpc::Status GetJob(const std::string& job, const std::string& token = "") {
    PatientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::GetJobRequest request;
    request.set_job(job);
    v1::GetJobResponse response;
    return v1::Query::NewStub(channel_)->GetJob(&context, request, &response);
  }
  grpc::Status ReadLoss() {
    PatientContext context;
    v1::RangeRequest request;
    request.mutable_selector()->set_job("vision");
    auto reader = v1::Query::NewStub(channel_)->Range(&context, request);
    for (v1::RangeResponse piece; reader->Read(&piece);) {
    }
    return reader->Finish();
  }

  // Of the store that nobody has open, one byte in each table of a day. The other tables are read
  // by the start.
  int DamageDays() {
    rocksdb::DBOptions options;
    options.env = &env_;
    std::vector<std::string> names;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(options, "/data", &names).ok());
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::OpenForReadOnly(options, "/data", families, &handles, &db).ok());
    std::vector<rocksdb::LiveFileMetaData> tables;
    db->GetLiveFilesMetaData(&tables);
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
    int damaged = 0;
    for (const auto& table : tables) {
      if (!storage::ParsePartitionName(table.column_family_name).has_value()) continue;
      std::string bytes;
      EXPECT_TRUE(rocksdb::ReadFileToString(&env_, "/data" + table.name, &bytes).ok());
      bytes[10] = static_cast<char>(~bytes[10]);
      EXPECT_TRUE(rocksdb::WriteStringToFile(&env_, bytes, "/data" + table.name).ok());
      ++damaged;
    }
    return damaged;
  }

  // What the table says about the failure holds for what the client has got.
  static void Expect(Failure failure, const grpc::Status& status) {
    const ErrorRow& row = RowOf(ErrorOf(failure, ""));
    SCOPED_TRACE(std::string(row.name) + ": " + status.error_message());
    EXPECT_EQ(static_cast<int>(status.error_code()), static_cast<int>(row.code));
    EXPECT_FALSE(status.error_message().empty());
    const Details details = DetailsOf(status);
    EXPECT_EQ(details.retry.has_value(), row.retry_after != absl::ZeroDuration());
    if (!details.retry.has_value()) return;
    EXPECT_GE(*details.retry, row.retry_after);
    EXPECT_LE(*details.retry, row.retry_after + row.retry_spread);
    EXPECT_EQ(details.reason, row.name);
  }

  TestFiles files_;
  storage::FaultyEnv env_;
  config::v1::Collector config_;
  std::unique_ptr<Collector> collector_;
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(ErrorRowsTest, Overloaded) {
  config_.mutable_ingest()->set_max_streams(1);
  Start();
  Open(ingest::HelloMessage("a"));
  Expect(Failure::kOverloaded, EndOf(Begin({ingest::HelloMessage("b")}).get()));
}

TEST_F(ErrorRowsTest, Draining) {
  Start();
  Stream* stream = Open(ingest::HelloMessage());
  EXPECT_TRUE(collector_->Drain().ok());
  Expect(Failure::kDraining, EndOf(stream));
}

TEST_F(ErrorRowsTest, DiskRefuses) {
  Start();
  Stream* stream = Open(ingest::HelloMessage());
  env_.RefuseWrites(true);
  stream->call->Write(ingest::LayoutMessage());
  stream->call->Write(ingest::BatchMessage(1));
  const grpc::Status status = EndOf(stream);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_TRUE(DetailsOf(status).retry.has_value());
}

TEST_F(ErrorRowsTest, ClockDoubtedAndAThrottleGivesTheReason) {
  Start();
  const int64_t tomorrow = absl::ToUnixNanos(absl::Now() + absl::Hours(24));
  auto hello = ingest::HelloMessage();
  hello.mutable_hello()->set_clock_unix_ns(tomorrow);
  Stream* stream = Open(hello);
  auto batch = ingest::BatchMessage(1);
  for (int64_t& time : *batch.mutable_batch()->mutable_times_unix_ns()) time = tomorrow;
  stream->call->Write(ingest::LayoutMessage());
  stream->call->Write(batch);
  v1::ServerMessage answer;
  ASSERT_TRUE(stream->call->Read(&answer));
  EXPECT_GE(answer.throttle().pause_ms(), 5000u);
  EXPECT_THAT(answer.throttle().reason(), testing::HasSubstr("ahead of the collector's"));
  Expect(Failure::kClockDoubted, EndOf(stream));
}

TEST_F(ErrorRowsTest, Superseded) {
  Start();
  Stream* older = Open(ingest::HelloMessage());
  Open(ingest::HelloMessage());
  Expect(Failure::kSuperseded, EndOf(older));
}

TEST_F(ErrorRowsTest, Malformed) {
  const grpc::Status status =
      Send({ingest::HelloMessage(), ingest::LayoutMessage(), ingest::BatchMessage(0)});
  Expect(Failure::kMalformed, status);
  EXPECT_EQ(DetailsOf(status).field, "batch.sequence");
}

TEST_F(ErrorRowsTest, MalformedByNamingASeriesTwice) {
  auto layout = ingest::LayoutMessage(2);
  *layout.mutable_layout()->mutable_series(1) = layout.layout().series(0);
  const grpc::Status status = Send({ingest::HelloMessage(), layout});
  Expect(Failure::kMalformed, status);
  EXPECT_EQ(DetailsOf(status).field, "layout.series");
}

TEST_F(ErrorRowsTest, TooLargeByItsParts) {
  Expect(Failure::kTooLarge, Send({ingest::HelloMessage(), ingest::LayoutMessage(9)}));
}

TEST_F(ErrorRowsTest, TooLargeBesideTheOtherLayouts) {
  config_.mutable_ingest()->set_max_columns_per_stream(4);
  Expect(Failure::kTooLarge, Send({ingest::HelloMessage(), ingest::LayoutMessage(4, 1),
                                   ingest::LayoutMessage(4, 1), ingest::LayoutMessage(1, 2)}));
}

TEST_F(ErrorRowsTest, TooLargeInBytes) {
  Expect(Failure::kTooLarge, Send({ingest::HelloMessage(), ingest::LayoutMessage(),
                                   ingest::BatchMessage(1, std::vector<double>(10'000))}));
}

TEST_F(ErrorRowsTest, OutOfOrder) { Expect(Failure::kOutOfOrder, Send({ingest::BatchMessage(1)})); }

TEST_F(ErrorRowsTest, Misdirected) {
  for (const char* member : {"here:7411", "there:7411"}) {
    config_.mutable_cluster()->add_members(member);
  }
  config_.mutable_cluster()->set_member("there");
  Expect(Failure::kMisdirected, Send({ingest::HelloMessage()}));
}

TEST_F(ErrorRowsTest, NameTaken) {
  Start();
  Open(ingest::HelloMessage());
  Expect(Failure::kNameTaken, EndOf(Begin({ingest::HelloMessage("agent-1", 8)}).get()));
}

TEST_F(ErrorRowsTest, TooSlow) {
  config_.mutable_quotas()->set_hello_timeout(absl::ToInt64Nanoseconds(absl::Milliseconds(20)));
  Expect(Failure::kTooSlow, Send({}));
}

TEST_F(ErrorRowsTest, NotFound) {
  Start();
  Expect(Failure::kNotFound, GetJob("nobody"));
}

TEST_F(ErrorRowsTest, Damaged) {
  Start();
  Stream* stream = Open(ingest::HelloMessage());
  stream->call->Write(ingest::LayoutMessage());
  stream->call->Write(ingest::BatchMessage(1));
  v1::ServerMessage answer;
  ASSERT_TRUE(stream->call->Read(&answer));
  EXPECT_TRUE(ReadLoss().ok());
  streams_.clear();
  ASSERT_TRUE(collector_->Drain().ok());
  collector_.reset();
  ASSERT_GT(DamageDays(), 0);
  Start();
  Expect(Failure::kDamaged, ReadLoss());
  EXPECT_TRUE(GetJob("vision").ok()) << "the rest is answered";
}

TEST_F(ErrorRowsTest, Unauthenticated) {
  LetIn(Entry("writer", "roles: [write], jobs: 'vis.*'"));
  Start();
  for (const auto& status : {GetJob("vision"), GetJob("vision", "stranger"),
                             EndOf(Begin({ingest::HelloMessage()}).get())}) {
    Expect(Failure::kUnauthenticated, status);
    EXPECT_EQ(DetailsOf(status).reason, "UNAUTHENTICATED");
  }
}

TEST_F(ErrorRowsTest, Forbidden) {
  LetIn(Entry("writer", "roles: [write], jobs: 'vis.*'") +
        Entry("reader", "roles: [read], jobs: 'vis.*'"));
  Start();
  for (const auto& status : {GetJob("vision", "writer"), GetJob("speech", "reader")}) {
    Expect(Failure::kForbidden, status);
    EXPECT_EQ(DetailsOf(status).reason, "FORBIDDEN");
  }
  EXPECT_EQ(GetJob("vision", "reader").error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ErrorRowsTest, ForbiddenToListTheSeriesOfEveryJob) {
  LetIn(Entry("reader", "roles: [read], jobs: 'vis.*'") +
        Entry("chief", "roles: [read], jobs: '.*'"));
  Start();
  const auto cardinality = [this](const std::string& token) {
    PatientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::CardinalityResponse response;
    return v1::Query::NewStub(channel_)->Cardinality(&context, {}, &response);
  };
  const grpc::Status status = cardinality("reader");
  Expect(Failure::kForbidden, status);
  EXPECT_EQ(DetailsOf(status).reason, "FORBIDDEN");
  EXPECT_TRUE(cardinality("chief").ok());
}

TEST_F(ErrorRowsTest, UnsupportedMethod) {
  Start();
  const grpc::Status status = CallBytes(channel_, "/tacho.v1.Ingest/Nothing", "").first;
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED) << "gRPC's own, without a text";
  EXPECT_EQ(status.error_details(), "");
}

// No code of ours sees such a request: gRPC would answer as if the method were unknown.
TEST_F(ErrorRowsTest, MalformedByNotBeingItsMessage) {
  Start();
  for (const char* method :
       {"/tacho.v1.Query/GetJob", "/tacho.v1.Query/Range", "/tacho.v1.Query/Watch",
        "/tensorboard.data.TensorBoardDataProvider/ListRuns"}) {
    const grpc::Status status = CallBytes(channel_, method, "\xff\xff\xff").first;
    Expect(Failure::kMalformed, status);
    EXPECT_EQ(DetailsOf(status).reason, "MALFORMED") << method;
  }
}

TEST_F(ErrorRowsTest, UnsupportedCompression) {
  Start();
  PatientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::GetJobRequest request;
  request.set_job(std::string(10'000, 'j'));
  v1::GetJobResponse response;
  Expect(Failure::kUnsupported, v1::Query::NewStub(channel_)->GetJob(&context, request, &response));
}

TEST_F(ErrorRowsTest, Cancelled) {
  Start();
  Stream* stream = Open(ingest::HelloMessage());
  stream->context.TryCancel();
  EXPECT_EQ(EndOf(stream).error_code(), StatusCode::CANCELLED);
}

// No error at all: the stream goes on, nothing is to be sent again.
TEST_F(ErrorRowsTest, ALimitOfSeriesIsToldInTheAck) {
  config_.mutable_limits()->set_series(1);
  Start();
  Stream* stream = Open(ingest::HelloMessage());
  stream->call->Write(ingest::LayoutMessage(2));
  stream->call->Write(ingest::BatchMessage(1));
  v1::ServerMessage answer;
  ASSERT_TRUE(stream->call->Read(&answer));
  EXPECT_EQ(answer.ack().durable_sequence(), 1u);
  ASSERT_EQ(answer.ack().rejects_size(), 1);
  EXPECT_EQ(answer.ack().rejects(0).samples(), 1u);
}

}  // namespace
}  // namespace tacho::server::errors
