// Comparisons with jobs that other members of a cluster keep: what goes wrong, and what changes
// meanwhile. That the answers are the same is tried in query_compare_test.cc.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "server/query/compare/compare_query.h"
#include "server/query/compare/remote_subject.h"
#include "server/query/compare/subject_answer.h"
#include "tests/server/query/query_store_fixture.h"

namespace tacho::server::query {
namespace {

using testing::HasSubstr;
using Response = v1::CompareSubjectResponse;

class CompareElsewhereTest : public QueryStoreFixture {
 protected:
  absl::StatusOr<Response> Ask(const v1::CompareSubjectRequest& request) {
    Response last;
    const absl::Status status = AnswerSubject(*store_, request, 100, control_, [&](Response piece) {
      last.MergeFrom(piece);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return last;
  }
  static v1::CompareSubjectRequest AboutLoss(v1::ComparedPart part) {
    v1::CompareSubjectRequest request;
    request.mutable_compare()->add_subjects()->set_job("a");
    request.mutable_compare()->add_metrics("loss");
    request.set_part(part);
    return request;
  }
  // Compares "a", which is kept here, with "b", of which `edit` changes each answer.
  absl::Status CompareWith(const std::function<void(Response*)>& edit) {
    v1::CompareRequest request;
    request.add_subjects()->set_job("a");
    request.add_subjects()->set_job("b");
    request.set_alignment(alignment_);
    const auto elsewhere = [&](absl::string_view job) -> SubjectCall {
      if (job != "b") return nullptr;
      return [&](const v1::CompareSubjectRequest& asked,
                 absl::FunctionRef<absl::Status(const Response&)> take) {
        return AnswerSubject(*store_, asked, 100, control_, [&](Response piece) {
          edit(&piece);
          return take(piece);
        });
      };
    };
    answers_.clear();
    return Compare(*store_, request, {}, *security::Rights::Everything(), control_, elsewhere,
                   [&](const v1::CompareResponse& message) {
                     answers_.push_back(message);
                     return absl::OkStatus();
                   });
  }

  v1::Alignment alignment_ = v1::ALIGNMENT_STEP;
  QueryControl control_;
  std::vector<v1::CompareResponse> answers_;
};

TEST_F(CompareElsewhereTest, ARequestThatMakesNoSenseIsRefused) {
  MakeJob("a", {.metrics = {"loss"}});
  auto request = AboutLoss(v1::COMPARED_PART_UNSPECIFIED);
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("part"));
  request.set_part(static_cast<v1::ComparedPart>(99));
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("part"));
  EXPECT_THAT(Ask({}).status().message(), HasSubstr("compare.subjects"));
  request = AboutLoss(v1::COMPARED_PART_PLACES);
  request.mutable_compare()->add_subjects()->set_job("a");
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("compare.subjects"));
  request = AboutLoss(v1::COMPARED_PART_PLACES);
  request.mutable_compare()->add_metrics("lr");
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("compare.metrics"));
  request = AboutLoss(v1::COMPARED_PART_PLACES);
  request.mutable_compare()->set_alignment(v1::ALIGNMENT_ELAPSED);
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("buckets"));
  request.set_buckets(10'001);
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("buckets"));
  request.set_buckets(10);
  request.set_first_position(-1);
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("last_position"));
  request.set_first_position(1);
  EXPECT_THAT(Ask(request).status().message(), HasSubstr("last_position"));
  request = AboutLoss(v1::COMPARED_PART_SERIES);
  request.set_max_series(1);
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(request).status()));
}

TEST_F(CompareElsewhereTest, NoGridAndNoOriginEndsTheProcess) {
  MakeJob("a", {.metrics = {"loss"}});
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  for (const int64_t origin : {kLowest, int64_t{-1}, int64_t{0}, kTestBase, kHighest}) {
    for (const int64_t first : {int64_t{0}, int64_t{5}, kHighest}) {
      for (const int64_t length : {int64_t{0}, int64_t{1}, 100 * kTestSecond, kHighest}) {
        for (const uint32_t buckets : {1u, 7u, 10'000u}) {
          auto request = AboutLoss(v1::COMPARED_PART_PLACES);
          request.mutable_compare()->set_alignment(v1::ALIGNMENT_ELAPSED);
          request.set_origin_unix_ns(origin);
          request.set_first_position(first);
          request.set_last_position(length > kHighest - first ? kHighest : first + length);
          request.set_buckets(buckets);
          request.set_figures(true);
          request.set_growth(true);
          EXPECT_TRUE(Ask(request).ok());
        }
      }
    }
  }
}

TEST_F(CompareElsewhereTest, RowsThatComeBetweenTwoCallsAreLeftOut) {
  MakeJob("a", {.tasks = 1, .metrics = {"loss"}});
  MakeJob("b", {.tasks = 1, .metrics = {"loss"}});
  alignment_ = v1::ALIGNMENT_ELAPSED;
  ASSERT_TRUE(CompareWith([](Response*) {}).ok());
  const std::string expected = answers_.at(1).SerializeAsString();
  bool appended = false;
  const auto append_after_extent = [&](Response* piece) {
    if (!piece->has_extent() || appended) return;
    appended = true;
    const auto layout = Register("b", 0, 9, {"loss"});
    Append(layout, {kTestBase + 3'000'000 * kTestSecond}, {1'000'000}, {7.0});
  };
  ASSERT_TRUE(CompareWith(append_after_extent).ok());
  EXPECT_TRUE(appended);
  EXPECT_EQ(answers_.at(1).SerializeAsString(), expected);
  ASSERT_TRUE(CompareWith([](Response*) {}).ok());
  EXPECT_NE(answers_.at(1).SerializeAsString(), expected) << "they are there the next time";
}

TEST_F(CompareElsewhereTest, AnAnswerThatMakesNoSenseEndsTheComparison) {
  MakeJob("a", {.metrics = {"loss"}});
  MakeJob("b", {.metrics = {"loss"}});
  const auto refused = [this](const std::function<void(Response*)>& edit) {
    const absl::Status status = CompareWith(edit);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("member"));
  };
  const auto has_places = [](const Response& piece) { return piece.places().positions_size() > 1; };
  refused([&](Response* piece) {
    if (has_places(*piece)) piece->mutable_places()->mutable_values()->RemoveLast();
  });
  refused([&](Response* piece) {
    if (has_places(*piece)) piece->mutable_places()->mutable_positions()->SwapElements(0, 1);
  });
  refused([&](Response* piece) {
    if (has_places(*piece)) piece->mutable_places()->add_counts(1);
  });
  refused([](Response* piece) { piece->set_series(piece->series() + 1'000'000'000); });
  refused([](Response* piece) {
    if (piece->metrics_size() > 0) piece->add_metrics()->set_name("before all others, as ' ' is");
  });
  alignment_ = v1::ALIGNMENT_ELAPSED;
  refused([&](Response* piece) {
    if (has_places(*piece)) *piece->mutable_places()->mutable_positions()->rbegin() = 1'000'000;
  });
  refused([](Response* piece) {
    if (piece->has_extent()) piece->mutable_extent()->set_first(-5);
  });
}

}  // namespace
}  // namespace tacho::server::query
