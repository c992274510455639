// What members send may be wrong, late or too much: the integration test has the rest.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cluster/split/merge_aggregate.h"
#include "server/cluster/split/merge_export.h"
#include "server/cluster/split/merge_streams.h"

namespace tacho::server::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr SplitLimits kLimits = {.max_series = 100, .max_samples = 1'000};

template <typename Response>
class FakePart final : public PartSource<Response> {
 public:
  FakePart(std::vector<Response> messages, absl::Status end)
      : messages_(std::move(messages)), end_(std::move(end)) {}
  absl::StatusOr<bool> Next(Response* response) override {
    if (next_ < messages_.size()) {
      *response = messages_[next_++];
      return true;
    }
    if (end_.ok() || absl::IsNotFound(end_)) return false;
    return end_;
  }
  absl::Status not_found() const override {
    return absl::IsNotFound(end_) ? end_ : absl::OkStatus();
  }

 private:
  const std::vector<Response> messages_;
  const absl::Status end_;
  size_t next_ = 0;
};

template <typename Response>
void AddPart(std::vector<Response> messages, PartSources<Response>* parts,
             absl::Status end = absl::OkStatus()) {
  parts->push_back(std::make_unique<FakePart<Response>>(std::move(messages), std::move(end)));
}

v1::RangeResponse Piece(const std::string& host, std::vector<double> values) {
  v1::RangeResponse piece;
  if (!host.empty()) piece.mutable_series()->set_host(host);
  for (const double value : values) {
    piece.mutable_points()->add_times_unix_ns(1);
    piece.mutable_points()->add_values(value);
  }
  return piece;
}

class SplitStreamsTest : public ::testing::Test {
 protected:
  // "index host: values" of each piece, without the host where a series goes on; or the error.
  std::vector<std::string> Range(const PartSources<v1::RangeResponse>& parts,
                                 const SplitLimits& limits = kLimits) {
    std::vector<std::string> pieces;
    const absl::Status status =
        MergeRange(parts, /*packed=*/false, limits, control_, [&](const v1::RangeResponse& piece) {
          pieces.push_back(absl::StrCat(piece.series_index(), " ", piece.series().host(), ":"));
          for (const double value : piece.points().values()) {
            absl::StrAppend(&pieces.back(), " ", value);
          }
          return absl::OkStatus();
        });
    if (!status.ok()) pieces.push_back(status.ToString());
    return pieces;
  }

  query::QueryControl control_;
};

TEST_F(SplitStreamsTest, SeriesOfAllMembersComeInOrderAndWhole) {
  PartSources<v1::RangeResponse> parts;
  AddPart<v1::RangeResponse>({Piece("b", {1}), Piece("", {2}), Piece("d", {3})}, &parts);
  v1::RangeResponse packed = Piece("a", {4});
  *packed.add_more() = Piece("", {5});
  *packed.add_more() = Piece("c", {6});
  AddPart<v1::RangeResponse>({packed, Piece("", {7})}, &parts);
  AddPart<v1::RangeResponse>({}, &parts, absl::NotFoundError("no such job"));
  EXPECT_THAT(Range(parts),
              ElementsAre("0 a: 4", "0 : 5", "1 b: 1", "1 : 2", "2 c: 6", "2 : 7", "3 d: 3"));
}

TEST_F(SplitStreamsTest, AMembersErrorEndsTheAnswer) {
  PartSources<v1::RangeResponse> parts;
  AddPart<v1::RangeResponse>({Piece("a", {1})}, &parts);
  AddPart<v1::RangeResponse>({Piece("b", {2})}, &parts, absl::UnavailableError("member b is away"));
  const auto pieces = Range(parts);
  EXPECT_EQ(pieces.front(), "0 a: 1");
  EXPECT_EQ(pieces.back(), "UNAVAILABLE: member b is away");
}

TEST_F(SplitStreamsTest, AJobThatNoMemberKnowsIsNotFound) {
  PartSources<v1::RangeResponse> parts;
  for (int i = 0; i < 2; ++i) AddPart<v1::RangeResponse>({}, &parts, absl::NotFoundError("no job"));
  EXPECT_THAT(Range(parts), ElementsAre("NOT_FOUND: no job"));
}

TEST_F(SplitStreamsTest, LimitsAreThoseOfTheWhole) {
  for (const SplitLimits& limits : {SplitLimits{1, 1'000}, SplitLimits{100, 1}}) {
    PartSources<v1::RangeResponse> parts;
    AddPart<v1::RangeResponse>({Piece("a", {1})}, &parts);
    AddPart<v1::RangeResponse>({Piece("b", {2})}, &parts);
    EXPECT_THAT(Range(parts, limits),
                ElementsAre("0 a: 1", HasSubstr(limits.max_series == 1 ? "max_series = 1"
                                                                       : "max_samples = 1")));
  }
}

TEST_F(SplitStreamsTest, AnAnswerThatBeginsInASeriesIsRefused) {
  PartSources<v1::RangeResponse> parts;
  AddPart<v1::RangeResponse>({Piece("", {1})}, &parts);
  EXPECT_THAT(Range(parts), ElementsAre(HasSubstr("begins in the middle of a series")));
}

TEST_F(SplitStreamsTest, AnExportThatBeginsWithSamplesIsRefused) {
  v1::ExportResponse samples;
  samples.mutable_samples()->set_index(7);
  PartSources<v1::ExportResponse> parts;
  AddPart<v1::ExportResponse>({samples}, &parts);
  const absl::Status status =
      MergeExport(parts, control_, [](const v1::ExportResponse&) { return absl::OkStatus(); });
  EXPECT_THAT(status.message(), HasSubstr("begins with samples"));
}

class SplitAggregateTest : public SplitStreamsTest {
 protected:
  SplitAggregateTest() {
    request_.mutable_selector()->set_job("hosts");
    request_.set_max_points(2);
    request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  }

  // One bucket of each member's answer, in its order; NaN: it has none.
  static v1::RangeResponse Bucket(int64_t first, int64_t last, double value) {
    v1::RangeResponse piece;
    piece.mutable_series();
    v1::Buckets* const buckets = piece.mutable_buckets();
    buckets->add_first_times_unix_ns(first);
    buckets->add_last_times_unix_ns(last);
    buckets->add_avg(value);
    buckets->add_counts(1);
    buckets->add_non_finite(0);
    return piece;
  }

  absl::Status Merge(const AskRange& ask) {
    return MergeAggregate(request_, ask, kLimits, control_, [&](const v1::RangeResponse& piece) {
      for (const double value : piece.buckets().avg()) values_.push_back(value);
      return absl::OkStatus();
    });
  }

  v1::RangeRequest request_;
  std::vector<double> values_;
};

TEST_F(SplitAggregateTest, MembersGetTheGridOfAll) {
  std::vector<v1::RangeRequest> asked;
  const auto ask = [&](const v1::RangeRequest& request) {
    asked.push_back(request);
    PartSources<v1::RangeResponse> parts;
    AddPart<v1::RangeResponse>({Bucket(10, 15, 1)}, &parts);
    AddPart<v1::RangeResponse>({Bucket(12, 90, 5)}, &parts);
    return parts;
  };
  ASSERT_TRUE(Merge(ask).ok());
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].aggregation().function(), v1::AGGREGATE_FUNCTION_COUNT);
  EXPECT_EQ(asked[0].max_points(), 1u);
  EXPECT_EQ(asked[1].grid().first_unix_ns(), 10);
  EXPECT_EQ(asked[1].grid().last_unix_ns(), 90);
  EXPECT_THAT(values_, ElementsAre(6));
}

TEST_F(SplitAggregateTest, BucketsOutsideOfTheGridAndTornColumnsAreRefused) {
  for (const bool torn : {false, true}) {
    int questions = 0;
    const auto ask = [&](const v1::RangeRequest&) {
      PartSources<v1::RangeResponse> parts;
      v1::RangeResponse piece =
          ++questions == 1 ? Bucket(10, 20, 1) : Bucket(torn ? 10 : 500, 600, 1);
      if (questions == 2 && torn) piece.mutable_buckets()->clear_avg();
      AddPart<v1::RangeResponse>({piece}, &parts);
      return parts;
    };
    const absl::Status status = Merge(ask);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr(torn ? "have gaps" : "outside of the grid"));
  }
}

TEST_F(SplitAggregateTest, WhatDoesNotFollowFromThePartsIsRefusedBeforeAnybodyIsAsked) {
  const auto ask = [](const v1::RangeRequest&) -> PartSources<v1::RangeResponse> {
    ADD_FAILURE() << "a member is asked";
    return {};
  };
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_P99);
  EXPECT_THAT(Merge(ask).message(), HasSubstr("AGGREGATE_FUNCTION_P99 of a split job"));
  request_.mutable_aggregation()->set_function(v1::AGGREGATE_FUNCTION_SUM);
  request_.set_axis(v1::AXIS_STEP);
  EXPECT_THAT(Merge(ask).message(), HasSubstr("an aggregate by step of a split job"));
  request_.set_axis(v1::AXIS_TIME);
  request_.set_max_points(0);
  EXPECT_THAT(Merge(ask).message(), HasSubstr("max_points"));
}

}  // namespace
}  // namespace tacho::server::cluster
