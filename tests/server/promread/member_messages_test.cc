// What members of a cluster ask each other, there and back.
#include "server/promread/member_messages.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tacho::server::promread {
namespace {

using storage::Matcher;
using testing::HasSubstr;

ReadQuery QueryWith(Matcher::Op op, const std::string& value) {
  ReadQuery query = {.begin_ms = std::numeric_limits<int64_t>::min(), .end_ms = 7, .matchers = {}};
  query.matchers.push_back(*Matcher::Create("job", op, value));
  return query;
}

TEST(MemberMessagesTest, SelectionsComeBackAsTheyWent) {
  for (const auto op : {Matcher::Op::kEqual, Matcher::Op::kNotEqual, Matcher::Op::kMatches,
                        Matcher::Op::kNotMatches}) {
    const auto back = FromSelection(*ToSelection(QueryWith(op, "bert.*")));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->begin_ms, std::numeric_limits<int64_t>::min());
    EXPECT_EQ(back->end_ms, 7);
    ASSERT_EQ(back->matchers.size(), 1u);
    EXPECT_EQ(back->matchers[0].label(), "job");
    EXPECT_EQ(back->matchers[0].op(), op);
    EXPECT_EQ(back->matchers[0].value(), "bert.*");
  }
}

TEST(MemberMessagesTest, ListsComeBackAsTheyWent) {
  for (const auto kind :
       {ListKind::kLabelNames, ListKind::kLabelValues, ListKind::kSeries, ListKind::kMetadata}) {
    ListQuestion question = {.kind = kind, .label = "a\xff", .request = {}};
    question.request.selectors = {QueryWith(Matcher::Op::kEqual, "bert")};
    question.request.everything = {.begin_ms = -3, .end_ms = 9, .matchers = {}};
    question.request.limit = 5;
    question.request.metric = "loss";
    const auto back = FromListRequest(*ToListRequest(question));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->kind, kind);
    EXPECT_EQ(back->label, "a\xff");
    ASSERT_EQ(back->request.selectors.size(), 1u);
    EXPECT_EQ(back->request.selectors[0].matchers[0].value(), "bert");
    EXPECT_EQ(back->request.everything.begin_ms, -3);
    EXPECT_EQ(back->request.everything.end_ms, 9);
    EXPECT_EQ(back->request.limit, 5u);
    EXPECT_EQ(back->request.metric, "loss");
  }
}

TEST(MemberMessagesTest, WhatIsNoUtf8IsNotSent) {
  EXPECT_THAT(ToSelection(QueryWith(Matcher::Op::kEqual, "\xff")).status().message(),
              HasSubstr("UTF-8"));
}

TEST(MemberMessagesTest, MessagesThatNoMemberSendsAreRefused) {
  v1::MemberSelection selection;
  selection.add_matchers()->set_label("job");
  EXPECT_EQ(FromSelection(selection).status().code(), absl::StatusCode::kInvalidArgument);
  selection.mutable_matchers(0)->set_op(v1::Matcher::OP_MATCHES);
  selection.mutable_matchers(0)->set_value("(");
  EXPECT_EQ(FromSelection(selection).status().code(), absl::StatusCode::kInvalidArgument);
  while (selection.matchers_size() <= kMaxMatchers) selection.add_matchers();
  EXPECT_EQ(FromSelection(selection).status().code(), absl::StatusCode::kResourceExhausted);

  v1::MemberListRequest request;
  EXPECT_EQ(FromListRequest(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.set_kind(v1::MemberListRequest::KIND_SERIES);
  EXPECT_TRUE(FromListRequest(request).ok());
  while (request.selectors_size() <= kMaxQueries) request.add_selectors();
  EXPECT_EQ(FromListRequest(request).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(MemberMessagesTest, LabelsComeBackAsTheyWent) {
  const LabelList labels = {{"__name__", "loss"}, {"job", "bert"}};
  v1::MemberSeries series;
  AddLabels(labels, &series);
  EXPECT_EQ(LabelsOf(series), labels);
}

}  // namespace
}  // namespace tacho::server::promread
