#include "tests/chaos/stored.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "tacho/v1/query.grpc.pb.h"

namespace tacho::chaos {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

void TakePoints(const v1::Points& points, std::vector<Sample>* samples) {
  for (int i = 0; i < points.times_unix_ns_size(); ++i) {
    samples->push_back({.time_ns = points.times_unix_ns(i),
                        .step = i < points.steps_size() ? points.steps(i) : -1,
                        .attempt = i < points.attempts_size() ? points.attempts(i) : 0,
                        .bits = std::bit_cast<uint64_t>(points.values(i))});
  }
}

absl::Status ReadSamples(v1::Query::Stub* stub, const std::string& job, Record* record) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::RangeRequest request;
  request.mutable_selector()->set_job(job);
  const auto reader = stub->Range(&context, request);
  v1::RangeResponse piece;
  std::vector<Sample>* samples = nullptr;
  while (reader->Read(&piece)) {
    if (piece.has_series()) {
      const SeriesKey key{piece.series().metric().name(), piece.series().task()};
      if (record->samples.contains(key)) {
        return absl::DataLossError(absl::StrCat(key.metric, " is two series"));
      }
      samples = &record->samples[key];
    }
    if (samples != nullptr) TakePoints(piece.points(), samples);
  }
  return FromGrpc(reader->Finish());
}

absl::Status ReadEvents(v1::Query::Stub* stub, const std::string& job, Record* record) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::ListEventsRequest request;
  request.set_job(job);
  request.set_kind("chaos");
  const auto reader = stub->ListEvents(&context, request);
  v1::ListEventsResponse piece;
  while (reader->Read(&piece)) {
    for (const v1::RecordedEvent& event : piece.events()) {
      record->events.push_back({.message = event.message(),
                                .task = event.source().task(),
                                .attempt = event.source().attempt(),
                                .time_ns = event.time_unix_ns(),
                                .step = event.has_step() ? event.step() : -1});
    }
  }
  std::sort(record->events.begin(), record->events.end());
  return FromGrpc(reader->Finish());
}

absl::Status ReadAttributes(v1::Query::Stub* stub, const std::string& job, Record* record) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::GetJobRequest request;
  request.set_job(job);
  v1::GetJobResponse answer;
  const grpc::Status status = stub->GetJob(&context, request, &answer);
  for (const v1::Attempt& attempt : answer.attempts()) {
    for (const auto& [key, value] : attempt.attributes()) {
      record->attributes[attempt.attempt()][key] = value;
    }
  }
  return FromGrpc(status);
}

}  // namespace

absl::StatusOr<Record> ReadStored(int port, const std::string& job) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  const auto stub = v1::Query::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials(), arguments));
  Record record;
  for (const auto read : {ReadSamples, ReadEvents, ReadAttributes}) {
    const absl::Status status = read(stub.get(), job, &record);
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return record;
}

}  // namespace tacho::chaos
