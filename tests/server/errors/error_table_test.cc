#include "server/errors/error_table.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/http/http_message.h"

namespace tacho::server::errors {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// As docs/errors.md has it.
std::string DocumentedRow(const ErrorRow& row) {
  const std::string retry =
      row.retry_after == absl::ZeroDuration()
          ? "no"
          : absl::StrCat(absl::ToInt64Seconds(row.retry_after), "–",
                         absl::ToInt64Seconds(row.retry_after + row.retry_spread), " s");
  return absl::StrCat("| `", row.name, "` | ", absl::StatusCodeToString(row.code), " | ",
                      row.http_status, " | ", retry, " | ", row.what, " | ", row.remedy, " |\n");
}

TEST(ErrorTableTest, RowsAreInTheOrderOfTheFailures) {
  int failure = 0;
  for (const ErrorRow& row : ErrorTable()) {
    EXPECT_EQ(static_cast<int>(row.failure), failure++) << row.name;
  }
  EXPECT_EQ(failure, static_cast<int>(Failure::kInternal) + 1);
}

TEST(ErrorTableTest, ExactlyWhatTimeHealsIsUnavailableAndHasADelay) {
  for (const ErrorRow& row : ErrorTable()) {
    SCOPED_TRACE(std::string(row.name));
    const bool heals = row.code == absl::StatusCode::kUnavailable;
    const absl::Status status = ErrorOf(row.failure, "why");
    EXPECT_EQ(RetryAfter(status, 1).has_value(), heals);
    EXPECT_EQ(row.http_status == 503, heals);
    EXPECT_EQ(&RowOf(status), &row);
  }
}

TEST(ErrorTableTest, DelaysSpreadOverTheirWholeRange) {
  const absl::Status status = ErrorOf(Failure::kOverloaded, "full");
  std::set<absl::Duration> delays;
  for (uint64_t stream = 1; stream <= 1000; ++stream) {
    const absl::Duration delay = *RetryAfter(status, stream);
    EXPECT_GE(delay, absl::Seconds(1));
    EXPECT_LT(delay, absl::Seconds(3));
    delays.insert(delay);
  }
  EXPECT_EQ(delays.size(), 1000u);
}

TEST(ErrorTableTest, AStatusWithoutAFailureHasTheFirstRowOfItsCode) {
  EXPECT_EQ(RowOf(absl::UnavailableError("x")).failure, Failure::kOverloaded);
  EXPECT_EQ(RowOf(absl::ResourceExhaustedError("x")).failure, Failure::kTooLarge);
  EXPECT_EQ(RowOf(absl::AbortedError("x")).failure, Failure::kInternal);
}

TEST(ErrorTableTest, OverHttpADelayIsInWholeSecondsAndNeverShorter) {
  const http::HttpResponse busy = http::ErrorResponse(ErrorOf(Failure::kOverloaded, "full"), 1);
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.body, "full\n");
  EXPECT_THAT(busy.headers, ElementsAre(Pair("Retry-After", "3")));
  const http::HttpResponse missing = http::ErrorResponse(absl::NotFoundError("no such page"));
  EXPECT_EQ(missing.status, 404);
  EXPECT_THAT(missing.headers, IsEmpty());
}

TEST(ErrorTableTest, DocumentationHasEveryRowAndNoOther) {
  std::stringstream docs;
  docs << std::ifstream(TACHO_SOURCE_DIR "/docs/errors.md").rdbuf();
  const std::string text = docs.str();
  size_t rows = 0;
  for (size_t at = 0; (at = text.find("\n| `", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, ErrorTable().size());
  for (const ErrorRow& row : ErrorTable()) EXPECT_THAT(text, HasSubstr(DocumentedRow(row)));
}

}  // namespace
}  // namespace tacho::server::errors
