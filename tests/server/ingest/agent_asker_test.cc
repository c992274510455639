#include "server/ingest/agent_asker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/clock.h"

namespace tacho::server::ingest {
namespace {

std::string Data(uint32_t pid) {
  v1::AgentFindings findings;
  findings.add_stacks()->set_pid(pid);
  return findings.SerializeAsString();
}

v1::AgentReport Report(uint64_t id, uint32_t part, std::string data, bool last) {
  v1::AgentReport report;
  report.set_id(id);
  report.set_part(part);
  report.set_data(std::move(data));
  report.set_last(last);
  return report;
}

class AgentAskerTest : public testing::Test {
 protected:
  // An agent that answers by `answer`, within the call.
  template <typename Answer>
  void Agent(uint64_t stream, const std::string& host, Answer answer) {
    asker_.Join(stream, {"stacks"}, [this, stream, answer](const v1::AgentRequest& request) {
      answer(stream, request);
      ++asked_;
    });
    asker_.Serves(stream, host);
  }
  void Agent(uint64_t stream, const std::string& host) {
    Agent(stream, host, [this](uint64_t from, const v1::AgentRequest& request) {
      asker_.Heard(from, Report(request.id(), 0, Data(static_cast<uint32_t>(from)), true));
    });
  }
  AgentAsker::Answers Ask(const std::set<std::string>& hosts, const std::string& kind = "stacks",
                          absl::Duration timeout = absl::Seconds(20)) {
    return asker_.Ask(hosts, kind, {}, timeout);
  }

  AgentAsker asker_;
  std::atomic<int> asked_ = 0;
};

TEST_F(AgentAskerTest, AsksTheAgentOfEachHostOnce) {
  Agent(1, "a");
  asker_.Serves(1, "b");
  Agent(2, "c");
  Agent(3, "d");
  const auto answers = Ask({"a", "b", "c"});
  ASSERT_EQ(answers.size(), 3);
  EXPECT_EQ((*answers.at("a"))->stacks(0).pid(), 1);
  EXPECT_EQ((*answers.at("b"))->stacks(0).pid(), 1);
  EXPECT_EQ((*answers.at("c"))->stacks(0).pid(), 2);
  EXPECT_EQ(asked_, 2);
}

TEST_F(AgentAskerTest, SaysWhyThereIsNoAnswer) {
  Agent(1, "silent", [](uint64_t, const v1::AgentRequest&) {});
  Agent(2, "leaves", [this](uint64_t stream, const v1::AgentRequest&) { asker_.Leave(stream); });
  Agent(3, "refuses", [this](uint64_t stream, const v1::AgentRequest& request) {
    v1::AgentFindings findings;
    findings.set_refusal("no");
    asker_.Heard(stream, Report(request.id(), 0, findings.SerializeAsString(), true));
  });
  Agent(4, "garbage", [this](uint64_t stream, const v1::AgentRequest& request) {
    asker_.Heard(stream, Report(request.id(), 0, "\xff\xff", true));
  });
  Agent(5, "hole", [this](uint64_t stream, const v1::AgentRequest& request) {
    asker_.Heard(stream, Report(request.id(), 1, Data(1), true));
  });
  asker_.Join(6, {}, [](const v1::AgentRequest&) { FAIL() << "an older agent is asked"; });
  asker_.Serves(6, "older");
  const auto answers = Ask({"silent", "leaves", "refuses", "garbage", "hole", "older", "nobody"},
                           "stacks", absl::Milliseconds(300));
  EXPECT_EQ(answers.at("silent").status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(answers.at("leaves").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(answers.at("refuses").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(answers.at("refuses").status().message(), "no");
  EXPECT_EQ(answers.at("garbage").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(answers.at("hole").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(answers.at("older").status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(answers.at("nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AgentAskerTest, TakesNoMoreBytesThanItAskedFor) {
  uint64_t allowed = 0;
  const auto send_parts = [&](uint64_t stream, const v1::AgentRequest& request, uint64_t bytes) {
    allowed = request.max_report_bytes();
    uint64_t sent = 0;
    for (uint32_t part = 0; sent < bytes; ++part) {
      const uint64_t size = std::min<uint64_t>(64 << 10, bytes - sent);
      sent += size;
      asker_.Heard(stream, Report(request.id(), part, std::string(size, '\0'), sent == bytes));
    }
  };
  Agent(1, "a", [&](uint64_t stream, const v1::AgentRequest& request) {
    send_parts(stream, request, request.max_report_bytes() + 1);
  });
  const auto answer = Ask({"a"}).at("a");
  EXPECT_EQ(allowed, kMaxReportBytes);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(answer.status().message().find("more than"), std::string::npos);
}

TEST_F(AgentAskerTest, SharesTheBytesAmongManyAgents) {
  std::set<std::string> hosts;
  std::set<uint32_t> allowed;
  for (uint64_t i = 1; i <= 100; ++i) {
    Agent(i, absl::StrCat("host-", i), [&](uint64_t stream, const v1::AgentRequest& request) {
      allowed.insert(request.max_report_bytes());
      asker_.Heard(stream, Report(request.id(), 0, Data(1), true));
    });
    hosts.insert(absl::StrCat("host-", i));
  }
  for (const auto& [host, answer] : Ask(hosts)) EXPECT_TRUE(answer.ok()) << host;
  EXPECT_EQ(allowed, std::set<uint32_t>{kMaxAskedBytes / 100});
}

TEST_F(AgentAskerTest, AsksAnAgentForOneThingAtATime) {
  Agent(1, "a", [&](uint64_t stream, const v1::AgentRequest& request) {
    EXPECT_EQ(Ask({"a"}).at("a").status().code(), absl::StatusCode::kResourceExhausted);
    asker_.Heard(stream, Report(request.id(), 0, Data(1), true));
  });
  EXPECT_TRUE(Ask({"a"}).at("a").ok());
  EXPECT_TRUE(Ask({"a"}).at("a").ok()) << "afterwards";
}

TEST_F(AgentAskerTest, LateAndUnaskedReportsChangeNothing) {
  uint64_t late = 0;
  Agent(1, "a", [&](uint64_t, const v1::AgentRequest& request) { late = request.id(); });
  asker_.Heard(1, Report(1, 0, Data(9), true));
  asker_.Heard(77, Report(1, 0, Data(9), true));
  EXPECT_FALSE(Ask({"a"}, "stacks", absl::Milliseconds(50)).at("a").ok());
  asker_.Heard(1, Report(late, 0, Data(9), true));
  Agent(1, "a");
  EXPECT_EQ((*Ask({"a"}).at("a"))->stacks(0).pid(), 1);
}

TEST_F(AgentAskerTest, CloseEndsTheWaiting) {
  Agent(1, "a", [](uint64_t, const v1::AgentRequest&) {});
  std::thread closer([this] {
    while (asked_ == 0) std::this_thread::yield();
    asker_.Close();
  });
  const absl::Time began = MonotonicNow();
  EXPECT_EQ(Ask({"a"}, "stacks", absl::Seconds(60)).at("a").status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_LT(MonotonicNow() - began, absl::Seconds(30));
  closer.join();
  EXPECT_EQ(Ask({"a"}).at("a").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tacho::server::ingest
