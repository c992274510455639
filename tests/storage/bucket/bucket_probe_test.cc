// The probe passes services that keep their promises, and names what is wrong with the others.
#include "storage/bucket/bucket_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "storage/bucket/bucket.h"
#include "tests/storage/bucket/bucket_under_test.h"
#include "tests/support/fake_bucket.h"
#include "tests/support/fake_object_store.h"

namespace tacho::storage {
namespace {

using testing::FakeObjectStore;
using ::testing::HasSubstr;
using Manner = FakeObjectStore::Manner;
using Result = ProbeFinding::Result;

std::string Failures(const ProbeReport& report) {
  std::string text;
  for (const ProbeFinding& finding : report.findings) {
    if (finding.result != Result::kPass) text += finding.name + " " + NameOf(finding.result) + "; ";
  }
  return text;
}

ProbeReport Probe(const FakeObjectStore& store, const std::string& url = "s3://tests") {
  const auto bucket = MustOpen(OptionsFor(store, url));
  auto report = ProbeBucket(*bucket);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.value_or(ProbeReport());
}

class ProbeAtServices : public ::testing::TestWithParam<ServiceKind> {};

TEST_P(ProbeAtServices, TellsWhetherCollectorsMayShareIt) {
  const auto service = GetParam().make();
  const auto bucket = service->Open("probed");
  const auto report = ProbeBucket(*bucket);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fit_to_share, GetParam().keeps_promises)
      << report->verdict << Failures(*report);
  EXPECT_EQ(report->fit_for_history, GetParam().keeps_promises);
  EXPECT_FALSE(report->quote_tags);
  EXPECT_EQ(report->findings.size(), 10u);
  if (!GetParam().keeps_promises) {
    EXPECT_THAT(report->verdict, HasSubstr("Ceph bucket with versions"));
  }
  const auto left = bucket->List("", "");
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_TRUE(left->objects.empty()) << "it leaves " << left->objects[0].key;
}

INSTANTIATE_TEST_SUITE_P(At, ProbeAtServices, ::testing::ValuesIn(ServicesThat(std::nullopt)),
                         [](const auto& one) { return one.param.name; });

TEST(ProbeTest, ServiceWithoutConditionsIsNamed) {
  const FakeObjectStore store(Manner::kIgnorant);
  const ProbeReport report = Probe(store);
  EXPECT_FALSE(report.fit_to_share);
  EXPECT_THAT(report.verdict, HasSubstr("ignores conditions"));
  EXPECT_EQ(Failures(report),
            "create_once fail; create_race fail; replace_race fail; replace_stale fail; "
            "replace_missing fail; ");
}

// Asking twice would not show it.
TEST(ProbeTest, ServiceThatLooksFirstAndWritesLaterIsNamed) {
  const FakeObjectStore store(Manner::kRacing);
  const ProbeReport report = Probe(store);
  EXPECT_FALSE(report.fit_to_share);
  EXPECT_THAT(report.verdict, HasSubstr("looks first and writes later"));
  EXPECT_EQ(report.Find("create_once")->result, Result::kPass);
  EXPECT_EQ(report.Find("create_race")->result, Result::kFail);
  EXPECT_THAT(report.Find("create_race")->detail, HasSubstr("were told that they succeeded"));
  EXPECT_EQ(report.Find("replace_race")->result, Result::kFail);
}

TEST(ProbeTest, TagsThatMustBeQuotedAreFoundOut) {
  FakeObjectStore store(Manner::kAws);
  store.OnRequest([](const FakeObjectStore::Request& request) {
    const auto tag = request.headers.find("if-match");
    return tag != request.headers.end() && tag->second[0] != '"'
               ? FakeObjectStore::Fault::kForbidden
               : FakeObjectStore::Fault::kNone;
  });
  const ProbeReport report = Probe(store);
  EXPECT_TRUE(report.quote_tags);
  EXPECT_TRUE(report.fit_to_share) << report.verdict;
  EXPECT_THAT(report.verdict, HasSubstr("quotes"));
}

TEST(ProbeTest, BucketThatIsNotThereIsAnError) {
  const FakeObjectStore store(Manner::kAws);
  const auto bucket = MustOpen(OptionsFor(store, "s3://another"));
  EXPECT_TRUE(absl::IsInvalidArgument(ProbeBucket(*bucket).status()));
}

// A service that says 503 to each creation is neither good nor bad.
TEST(ProbeTest, ServiceThatIsBusyIsNotJudged) {
  FakeObjectStore store(Manner::kAws);
  store.OnRequest([](const FakeObjectStore::Request& request) {
    return request.headers.count("if-none-match") > 0 ? FakeObjectStore::Fault::kError
                                                      : FakeObjectStore::Fault::kNone;
  });
  const ProbeReport report = Probe(store);
  EXPECT_FALSE(report.fit_to_share);
  EXPECT_FALSE(report.failed);
  EXPECT_EQ(report.Find("create_once")->result, Result::kUnknown);
  EXPECT_THAT(report.verdict, HasSubstr("try again"));
}

// An answer is lost, and the client sends the request again: it is refused then, though its first
// one has won.
TEST(ProbeTest, LostAnswersDoNotSpeakAgainstAService) {
  FakeBucket bucket;
  bucket.set_faults([](const BucketRequest& request) {
    return request.writes() ? BucketFault::kTwice : BucketFault::kNone;
  });
  const auto report = ProbeBucket(bucket);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->fit_to_share) << Failures(*report);
  EXPECT_FALSE(report->failed);
}

TEST(ProbeTest, ABucketWithVersionsIsRefusedAlsoWhenAnswersAreLost) {
  FakeBucket bucket(BucketPersonality::kRgwVersioned);
  bucket.set_faults([](const BucketRequest& request) {
    return request.writes() ? BucketFault::kTwice : BucketFault::kNone;
  });
  const auto report = ProbeBucket(bucket);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->fit_to_share);
  EXPECT_TRUE(report->failed);
}

TEST(ProbeTest, SendsAboutAHundredRequests) {
  FakeObjectStore store(Manner::kAws);
  Probe(store);
  EXPECT_LE(store.requests(), 170);
}

}  // namespace
}  // namespace tacho::storage
