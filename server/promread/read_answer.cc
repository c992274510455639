// Goes through the selected series one by one. SAMPLES is written without generated code: an object
// for each sample would take three times the memory of its bytes.
#include "server/promread/read_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "interop/prometheus_read.pb.h"
#include "proto/base/crc32c.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/read_time.h"
#include "server/promread/sample_bytes.h"
#include "server/promread/series_walk.h"
#include "server/promread/snappy_message.h"
#include "server/promread/xor_chunk.h"
#include "storage/codec/bytes.h"

namespace tacho::server::promread {
namespace {

// Tags of fields (https://protobuf.dev/programming-guides/encoding/): number << 3 | wire type.
constexpr char kResultsTag = 0x0A;     // ReadResponse.results, bytes.
constexpr char kTimeseriesTag = 0x0A;  // QueryResult.timeseries, bytes.

// Counts the samples of one request.
class SampleCount {
 public:
  explicit SampleCount(uint64_t most) : most_(most) {}

  uint64_t count() const { return count_; }
  absl::Status Add(uint64_t samples) {
    count_ += samples;
    if (count_ <= most_) return absl::OkStatus();
    return errors::ErrorOf(errors::Failure::kTooLarge,
                           absl::StrCat("the answer has more than query.max_samples = ", most_,
                                        " samples: ask for a shorter range or fewer series"));
  }

 private:
  const uint64_t most_;
  uint64_t count_ = 0;
};

// What other members have of the query.
absl::StatusOr<MemberAnswers<v1::MemberReadResponse>> AskMembers(const ReadWorld& world,
                                                                 const ReadQuery& query) {
  if (world.elsewhere == nullptr) return MemberAnswers<v1::MemberReadResponse>();
  return world.elsewhere(query);
}

// Makes the answer SAMPLES, and counts its bytes.
class SamplesAnswer {
 public:
  SamplesAnswer(const ReadWorld& world, SampleCount* count) : world_(world), count_(count) {}
  ~SamplesAnswer() { world_.held->Release(held_); }
  SamplesAnswer(const SamplesAnswer&) = delete;
  SamplesAnswer& operator=(const SamplesAnswer&) = delete;

  absl::Status AddQuery(const ReadQuery& query) {
    TACHO_ASSIGN_OR_RETURN(auto members, AskMembers(world_, query));
    response_.BeginField();
    TACHO_RETURN_IF_ERROR(
        WalkSeries(world_.selection, world_.max_samples, query, std::move(members), this));
    response_.EndField(kResultsTag);
    return absl::OkStatus();
  }
  std::string Take() && { return std::move(response_).Take(); }

  // As WalkSeries() needs them.
  absl::Status Add(const LabelList& labels, const LastOfEachMs::Sample& sample) {
    if (series_.empty()) {
      ::prometheus_remote::TimeSeries head;
      AddLabels(labels, &head);
      series_ = head.SerializeAsString();
    }
    const size_t before = series_.size();
    AppendSample(sample.time_ms, sample.value, &series_);
    if (series_.size() / kStep != before / kStep) TACHO_RETURN_IF_ERROR(Hold(kStep));
    return count_->Add(1);
  }
  absl::Status EndSeries(const LabelList&) {
    if (series_.empty()) return absl::OkStatus();
    TACHO_RETURN_IF_ERROR(Hold(series_.size() % kStep));
    std::string head(1, kTimeseriesTag);
    storage::PutVarint(series_.size(), &head);
    response_.Append(head);
    response_.Append(series_);
    series_.clear();
    return absl::OkStatus();
  }

 private:
  // Counts more bytes of the answer.
  absl::Status Hold(size_t bytes) {
    if (held_ + bytes > kMaxSamplesBytes) {
      return errors::ErrorOf(
          errors::Failure::kTooLarge,
          absl::StrCat("the answer has more than ", kMaxSamplesBytes,
                       " bytes: ask for a shorter range or fewer series, or accept "
                       "STREAMED_XOR_CHUNKS, which has no such limit"));
    }
    if (!world_.held->Take(bytes)) {
      return errors::ErrorOf(errors::Failure::kOverloaded,
                             "other answers of remote read fill the memory for them: try again");
    }
    held_ += bytes;
    return absl::OkStatus();
  }

  static constexpr size_t kStep = size_t{64} << 10;  // Bytes are counted by so many.

  const ReadWorld& world_;
  SampleCount* const count_;
  size_t held_ = 0;
  SnappyMessage response_;
  std::string series_;  // The one at hand. Its length comes before it.
};

// Makes frames of the chunks of one query.
class ChunkFrames {
 public:
  ChunkFrames(int query_index, size_t frame_bytes, SampleCount* count,
              absl::FunctionRef<absl::Status(std::string)> send)
      : query_index_(query_index), frame_bytes_(frame_bytes), count_(count), send_(send) {}

  // As WalkSeries() needs them.
  absl::Status Add(const LabelList& labels, const LastOfEachMs::Sample& sample) {
    TACHO_RETURN_IF_ERROR(count_->Add(1));
    chunk_.Append(sample.time_ms, sample.value);
    if (chunk_.samples() < kSamplesOfChunk) return absl::OkStatus();
    CloseChunk(labels);
    return bytes_ < frame_bytes_ ? absl::OkStatus() : SendFrame();
  }
  absl::Status EndSeries(const LabelList& labels) {
    if (chunk_.samples() > 0) CloseChunk(labels);
    return bytes_ == 0 ? absl::OkStatus() : SendFrame();
  }

 private:
  void CloseChunk(const LabelList& labels) {
    if (bytes_ == 0) {
      response_.set_query_index(query_index_);
      AddLabels(labels, response_.add_chunked_series());
    }
    auto* const chunk = response_.mutable_chunked_series(0)->add_chunks();
    chunk->set_min_time_ms(chunk_.first_ms());
    chunk->set_max_time_ms(chunk_.last_ms());
    chunk->set_type(::prometheus_remote::Chunk::XOR);
    chunk->set_data(chunk_.Take());
    bytes_ += chunk->data().size();
  }
  absl::Status SendFrame() {
    bytes_ = 0;
    const std::string message = response_.SerializeAsString();
    response_.Clear();
    return send_(FrameOf(message));
  }

  const int query_index_;
  const size_t frame_bytes_;
  SampleCount* const count_;
  const absl::FunctionRef<absl::Status(std::string)> send_;
  XorChunk chunk_;
  ::prometheus_remote::ChunkedReadResponse response_;  // The series, as far as it is not sent.
  size_t bytes_ = 0;                                   // Of its chunks. 0: it holds nothing.
};

}  // namespace

std::string FrameOf(const std::string& message) {
  std::string frame;
  frame.reserve(message.size() + 14);
  storage::PutVarint(message.size(), &frame);
  const uint32_t crc = ExtendCrc32c(0, message.data(), message.size());
  for (int shift = 24; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(crc >> shift));
  frame += message;
  return frame;
}

absl::StatusOr<uint64_t> MakeSamplesAnswer(const ReadWorld& world, const ReadRequest& request,
                                           std::string* packed) {
  SampleCount count(world.max_samples);
  SamplesAnswer answer(world, &count);
  for (const ReadQuery& query : request.queries) TACHO_RETURN_IF_ERROR(answer.AddQuery(query));
  TACHO_RETURN_IF_ERROR(world.selection.control.Check());
  *packed = std::move(answer).Take();
  return count.count();
}

absl::StatusOr<uint64_t> MakeChunksAnswer(const ReadWorld& world, const ReadRequest& request,
                                          absl::FunctionRef<absl::Status(std::string)> send) {
  SampleCount count(world.max_samples);
  for (size_t i = 0; i < request.queries.size(); ++i) {
    TACHO_ASSIGN_OR_RETURN(auto members, AskMembers(world, request.queries[i]));
    ChunkFrames frames(static_cast<int>(i), world.frame_bytes, &count, send);
    TACHO_RETURN_IF_ERROR(WalkSeries(world.selection, world.max_samples, request.queries[i],
                                     std::move(members), &frames));
  }
  return count.count();
}

}  // namespace tacho::server::promread
