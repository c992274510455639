#include "agent/sources/kubernetes/node_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "agent/sources/kubernetes/api_server.h"

namespace tacho::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

// As the API server writes it, with what is not looked at around it.
std::string NodeText(const std::string& spec, const std::string& conditions,
                     const std::string& version = "812") {
  return absl::StrCat(
      R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","uid":"u","resourceVersion":")",
      version,
      R"(","labels":{"name":"x"},"managedFields":[{"fieldsV1":{"f:spec":{"f:taints":{}}}}]},"spec":{)",
      spec, R"("podCIDR":"10.0.0.0/24"},"status":{"capacity":{"cpu":"8"},"conditions":[)",
      conditions, R"(],"images":[{"names":["a","b"],"sizeBytes":1}]}})", "\n");
}

std::string ConditionText(const std::string& type, const std::string& status) {
  return absl::StrCat(R"({"type":")", type, R"(","status":")", status,
                      R"(","reason":"Why","message":"the message"})");
}

NodeState Parsed(const std::string& text) {
  const auto state = ParseNode(text, "n1", "");
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() && state->has_value() ? **state : NodeState();
}

NodeState WithTaints(const std::vector<std::string>& taints) {
  NodeState state;
  for (const std::string& taint : taints) state.taints[taint];
  return state;
}

std::vector<std::string> Kinds(const std::optional<NodeState>& before, const NodeState& now) {
  std::vector<std::string> kinds;
  for (const NodeNotice& notice : CompareNodes(before, now)) kinds.push_back(notice.kind);
  return kinds;
}

TEST(NodeStateTest, TaintsCordonAndConditionsAreRead) {
  const NodeState state = Parsed(NodeText(
      R"("taints":[{"key":"dedicated","value":"ml","effect":"NoSchedule"},)"
      R"({"key":"karpenter.sh/disrupted","effect":"NoSchedule","timeAdded":"t"}],)"
      R"("unschedulable":true,)",
      absl::StrCat(ConditionText("Ready", "False"), ",", ConditionText("DiskPressure", "False"))));
  EXPECT_EQ(state.version, "812");
  EXPECT_TRUE(state.cordoned);
  EXPECT_THAT(state.taints, ElementsAre(Pair("dedicated:NoSchedule", "ml"),
                                        Pair("karpenter.sh/disrupted:NoSchedule", "")));
  EXPECT_THAT(state.unhealthy, ElementsAre(Pair("Ready", "False, Why: the message")));
  EXPECT_EQ(state.ready, false);
  EXPECT_TRUE(AnnouncesEnd(state));
  EXPECT_FALSE(AnnouncesEnd(WithTaints({"dedicated:NoSchedule"})));
}

TEST(NodeStateTest, TaintsThatKubernetesDerivesSayNothingMore) {
  std::string taints;
  for (const char* word : {"unschedulable", "not-ready", "unreachable", "memory-pressure",
                           "disk-pressure", "pid-pressure", "network-unavailable"}) {
    absl::StrAppend(&taints, taints.empty() ? "" : ",", R"({"key":"node.kubernetes.io/)", word,
                    R"(","effect":"NoSchedule"})");
  }
  EXPECT_THAT(Parsed(NodeText(absl::StrCat(R"("taints":[)", taints, "],"), "")).taints, IsEmpty());
}

TEST(NodeStateTest, ConditionIsJudgedByWhatItsTypeMeans) {
  const auto unhealthy = [](const std::string& type, const std::string& status) {
    return !Parsed(NodeText("", ConditionText(type, status))).unhealthy.empty();
  };
  for (const char* type : {"Ready", "AcceleratedHardwareReady", "GpuHealthy"}) {
    EXPECT_FALSE(unhealthy(type, "True")) << type;
    EXPECT_TRUE(unhealthy(type, "False")) << type;
    EXPECT_TRUE(unhealthy(type, "Unknown")) << type;
  }
  for (const char* type : {"MemoryPressure", "PIDPressure", "KernelDeadlock"}) {
    EXPECT_TRUE(unhealthy(type, "True")) << type;
    EXPECT_FALSE(unhealthy(type, "False")) << type;
    EXPECT_FALSE(unhealthy(type, "Unknown")) << type << ": Ready says that";
  }
  EXPECT_FALSE(Parsed(NodeText("", "")).ready.has_value());
}

TEST(NodeStateTest, KnownVersionIsNotReadAgain) {
  const std::string text = NodeText("", "");
  const auto same = ParseNode(text, "n1", "812");
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_FALSE(same->has_value());
  EXPECT_TRUE(ParseNode(text, "n1", "811")->has_value());
  // What comes behind the version is not looked at.
  EXPECT_TRUE(ParseNode(text.substr(0, 100), "n1", "812").ok());
  EXPECT_FALSE(ParseNode(text.substr(0, 100), "n1", "811").ok());
}

TEST(NodeStateTest, OtherTextIsRefused) {
  const std::string text = NodeText("", "");
  for (const std::string& other :
       {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
        std::string(R"({"kind":"Status","code":403})"), text + "{}",
        NodeText(R"("taints":[1],)", ""), NodeText("", "", "")}) {
    EXPECT_EQ(ParseNode(other, "n1", "").status().code(), absl::StatusCode::kInvalidArgument)
        << other;
  }
  EXPECT_THAT(std::string(ParseNode(text, "n2", "").status().message()), HasSubstr("'n1'"));
}

TEST(NodeStateTest, LongTextsAreCutAndManyItemsLeftOut) {
  std::string taints;
  std::string conditions;
  for (size_t i = 0; i <= kMaxNodeItems; ++i) {
    absl::StrAppend(&taints, i == 0 ? "" : ",", R"({"key":"k)", i, R"(","value":"a\u000ab)",
                    std::string(kMaxNodeText, 'v'), R"(","effect":"NoSchedule"})");
    absl::StrAppend(&conditions, i == 0 ? "" : ",", ConditionText(absl::StrCat("C", i), "True"));
  }
  const NodeState state = Parsed(NodeText(absl::StrCat(R"("taints":[)", taints, "],"), conditions));
  EXPECT_THAT(state.taints, SizeIs(kMaxNodeItems));
  EXPECT_THAT(state.unhealthy, SizeIs(kMaxNodeItems));
  EXPECT_EQ(state.taints.begin()->second, absl::StrCat("ab", std::string(kMaxNodeText - 3, 'v')));
}

TEST(NodeStateTest, FirstLookTellsWhatIsWrongAndNotHowTheNodeIsMeant) {
  EXPECT_THAT(Kinds(std::nullopt, WithTaints({"nvidia.com/gpu:NoSchedule"})), IsEmpty());
  NodeState state = WithTaints(
      {"nvidia.com/gpu:NoSchedule", "cloud.google.com/impending-node-termination:NoSchedule"});
  state.cordoned = true;
  state.unhealthy["DiskPressure"] = "True";
  EXPECT_THAT(Kinds(std::nullopt, state),
              ElementsAre("preempted", "node_cordoned", "node_unhealthy"));
}

TEST(NodeStateTest, EachChangeIsOneNoticeInBothDirections) {
  const NodeState quiet;
  NodeState state = WithTaints({"dedicated:NoExecute"});
  state.cordoned = true;
  state.unhealthy["Ready"] = "Unknown, NodeStatusUnknown: no word";
  const std::vector<NodeNotice> notices = CompareNodes(quiet, state);
  ASSERT_THAT(notices, SizeIs(3));
  EXPECT_EQ(notices[0].kind, "node_tainted");
  EXPECT_THAT(notices[0].fields,
              ElementsAre(Pair("effect", "NoExecute"), Pair("taint", "dedicated")));
  EXPECT_EQ(notices[0].message, "this node has a new taint: dedicated:NoExecute");
  EXPECT_EQ(notices[1].kind, "node_cordoned");
  EXPECT_EQ(notices[2].kind, "node_unhealthy");
  EXPECT_THAT(notices[2].message, HasSubstr("Unknown, NodeStatusUnknown: no word"));
  EXPECT_THAT(notices[2].fields, ElementsAre(Pair("condition", "Ready")));
  EXPECT_THAT(Kinds(state, state), IsEmpty());
  EXPECT_THAT(Kinds(state, quiet),
              ElementsAre("node_untainted", "node_uncordoned", "node_healthy"));
}

TEST(NodeStateTest, OnlyTaintsThatEndTheNodeArePreemption) {
  const NodeState quiet;
  for (const char* taint :
       {"ToBeDeletedByClusterAutoscaler:NoSchedule", "karpenter.sh/disrupted:NoSchedule",
        "karpenter.sh/disruption:NoSchedule", "aws-node-termination-handler/spot-itn:NoSchedule",
        "aws-node-termination-handler/asg-lifecycle-termination:NoSchedule",
        "node.kubernetes.io/out-of-service:NoExecute",
        "node.cloudprovider.kubernetes.io/shutdown:NoSchedule"}) {
    EXPECT_THAT(Kinds(quiet, WithTaints({taint})), ElementsAre("preempted")) << taint;
    EXPECT_THAT(Kinds(WithTaints({taint}), quiet), ElementsAre("node_untainted")) << taint;
  }
  for (const char* taint : {"DeletionCandidateOfClusterAutoscaler:PreferNoSchedule",
                            "aws-node-termination-handler/rebalance-recommendation:NoSchedule",
                            "aws-node-termination-handler/scheduled-maintenance:NoSchedule",
                            "kubernetes.azure.com/scalesetpriority:NoSchedule"}) {
    EXPECT_THAT(Kinds(quiet, WithTaints({taint})), ElementsAre("node_tainted")) << taint;
  }
}

TEST(NodeStateTest, TwoEffectsOfAnEndAreOnePreemption) {
  const NodeState one = WithTaints({"karpenter.sh/disrupted:NoSchedule"});
  const NodeState both =
      WithTaints({"karpenter.sh/disrupted:NoExecute", "karpenter.sh/disrupted:NoSchedule"});
  EXPECT_THAT(Kinds(NodeState(), both), ElementsAre("preempted"));
  EXPECT_THAT(Kinds(one, both), IsEmpty());
  EXPECT_THAT(Kinds(both, one), IsEmpty()) << "it is still going";
}

TEST(NodeStateTest, WhatIsRememberedIsComparedAsTheStateItself) {
  NodeState state = WithTaints({"a/b:NoSchedule", "c:NoExecute"});
  state.taints["a/b:NoSchedule"] = "value";
  state.cordoned = true;
  state.unhealthy["Ready"] = "False";
  const NodeState recalled = Recall(Remember(state));
  EXPECT_THAT(Kinds(recalled, state), IsEmpty());
  EXPECT_THAT(Kinds(state, recalled), IsEmpty());
  EXPECT_THAT(recalled.taints, ElementsAre(Key("a/b:NoSchedule"), Key("c:NoExecute")));
  EXPECT_NE(Remember(NodeState()), "") << "a first look would be told apart from none";
}

TEST(NodeStateTest, NoNoticeIsLongerThanTheCollectorTakes) {
  const std::string longest(kMaxNodeText, 'x');
  const NodeState state = Parsed(
      NodeText(absl::StrCat(R"("taints":[{"key":")", longest, R"(","value":")", longest,
                            R"(","effect":")", longest, R"("}],)"),
               absl::StrCat(R"({"type":")", longest.substr(7), R"(Healthy","status":")", longest,
                            R"(","reason":")", longest, R"(","message":")", longest, R"("})")));
  const std::vector<NodeNotice> notices = CompareNodes(NodeState(), state);
  ASSERT_THAT(notices, SizeIs(2));
  EXPECT_EQ(notices[0].kind, "node_tainted");
  EXPECT_LE(notices[0].message.size(), 1024u);
  EXPECT_EQ(notices[1].kind, "node_unhealthy");
  EXPECT_EQ(notices[1].message.size(), 1024u) << "it is cut, and not shorter than it needs to be";
  EXPECT_THAT(notices[1].message, StartsWith("the condition xxx"));
}

TEST(FindNodeTest, PlaceIsInThePodsEnvironment) {
  std::map<std::string, std::string> variables;
  const auto environment = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const auto find = [&] { return FindNode(environment, "/nowhere"); };
  EXPECT_FALSE(find()->has_value()) << "this is no pod";
  variables["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  EXPECT_EQ(find().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(find().status().message()), HasSubstr("set NODE_NAME"));
  variables["NODE_NAME"] = "n1";
  EXPECT_THAT(std::string(find().status().message()), HasSubstr("automountServiceAccountToken"));
}

TEST(FindNodeTest, VariablesThatCannotBeAreRefused) {
  const std::string directory = absl::StrCat(::testing::TempDir(), "/find_node_", ::getpid());
  std::filesystem::create_directories(directory);
  const absl::Cleanup remove = [&] { std::filesystem::remove_all(directory); };
  std::ofstream(directory + "/token") << "t";
  const auto find = [&](const char* host, const char* port, const char* node) {
    const std::map<std::string, const char*> variables = {
        {"KUBERNETES_SERVICE_HOST", host}, {"KUBERNETES_SERVICE_PORT", port}, {"NODE_NAME", node}};
    return FindNode([&](const char* name) { return variables.at(name); }, directory);
  };
  const auto place = find("fd00::1", "6443", "gke-a.b-7");
  ASSERT_TRUE(place.ok()) << place.status();
  EXPECT_EQ((*place)->url.authority(), "[fd00::1]:6443");
  EXPECT_EQ((*place)->url.path, "/api/v1/nodes/gke-a.b-7");
  EXPECT_EQ((*find("h", "", "n"))->url.port, "443");
  EXPECT_FALSE(find("a/b", "443", "n").ok());
  EXPECT_FALSE(find("h", "https", "n").ok());
  for (const char* node : {"../secrets", "n?x", "a b", "N"}) {
    EXPECT_EQ(find("h", "443", node).status().code(), absl::StatusCode::kInvalidArgument) << node;
  }
}

}  // namespace
}  // namespace tacho::agent
