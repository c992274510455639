// Reads a Node object as a stream, so that one of megabytes costs no tree, and compares what
// matters of it.
#include "agent/sources/kubernetes/node_state.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/import/input_file.h"
#include "client/import/json_reader.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {
namespace {

using importer::JsonReader;
using importer::JsonToken;
using Texts = std::map<std::string, std::string>;

// Taints after which the node goes. DeletionCandidateOfClusterAutoscaler is not among them: most
// candidates stay. Nor are a recommendation to rebalance, and AWS's maintenance, after which the
// node comes back.
constexpr std::array<absl::string_view, 8> kEnds = {
    "ToBeDeletedByClusterAutoscaler",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.kubernetes.io/out-of-service"};

// Kubernetes sets them for spec.unschedulable and for conditions, which are looked at themselves.
constexpr std::array<absl::string_view, 7> kDerived = {
    "node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/not-ready",     "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",  "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable"};

constexpr char kSeen[] = "seen";
constexpr char kCordoned[] = "cordoned";
constexpr char kTaint[] = "taint ";
constexpr char kUnhealthy[] = "unhealthy ";

absl::Status NoNode(absl::string_view what) { return absl::InvalidArgumentError(what); }

std::string Printable(absl::string_view text) {
  std::string clean(text.substr(0, kMaxNodeText));
  std::erase_if(clean, [](unsigned char c) { return !absl::ascii_isprint(c); });
  return clean;
}

// Reads the object whose kBeginObject was the last token. `member` takes each value, all of it, or
// says that nothing more is wanted (CANCELLED).
absl::Status ReadObject(
    JsonReader* reader,
    absl::FunctionRef<absl::Status(const std::string& name, JsonToken token)> member) {
  JsonToken token;
  for (;;) {
    TACHO_RETURN_IF_ERROR(reader->Next(&token));
    if (token == JsonToken::kEndObject) return absl::OkStatus();
    const std::string name = reader->text();
    TACHO_RETURN_IF_ERROR(reader->Next(&token));
    TACHO_RETURN_IF_ERROR(member(name, token));
  }
}

// The texts of a list of flat objects; the list's kBeginArray was the last token.
absl::Status ReadList(JsonReader* reader, absl::FunctionRef<void(Texts)> element) {
  JsonToken token;
  for (;;) {
    TACHO_RETURN_IF_ERROR(reader->Next(&token));
    if (token == JsonToken::kEndArray) return absl::OkStatus();
    if (token != JsonToken::kBeginObject) return NoNode("a list has something else than objects");
    Texts texts;
    const auto member = [&](const std::string& name, JsonToken value) {
      if (value == JsonToken::kString && texts.size() < kMaxNodeItems) {
        texts[name] = Printable(reader->text());
      }
      return reader->SkipValue(value);
    };
    TACHO_RETURN_IF_ERROR(ReadObject(reader, member));
    element(std::move(texts));
  }
}

void AddTaint(Texts texts, NodeState* state) {
  const std::string& key = texts["key"];
  if (key.empty() || std::find(kDerived.begin(), kDerived.end(), key) != kDerived.end()) return;
  if (state->taints.size() >= kMaxNodeItems) return;
  state->taints[absl::StrCat(key, ":", texts["effect"])] = texts["value"];
}

void AddCondition(Texts texts, NodeState* state) {
  const std::string& type = texts["type"];
  const std::string& status = texts["status"];
  if (type.empty()) return;
  const bool wanted = absl::EndsWith(type, "Ready") || absl::EndsWith(type, "Healthy");
  if (type == "Ready") state->ready = status == "True";
  const bool well = wanted ? status == "True" : status != "True";
  if (well || state->unhealthy.size() >= kMaxNodeItems) return;
  std::string says = status;
  if (!texts["reason"].empty()) absl::StrAppend(&says, ", ", texts["reason"]);
  if (!texts["message"].empty()) absl::StrAppend(&says, ": ", texts["message"]);
  state->unhealthy[type] = says;
}

// Takes the members of one object after the other.
class NodeReader {
 public:
  NodeReader(absl::string_view text, absl::string_view name, absl::string_view known)
      : source_(text), name_(name), known_(known) {}

  absl::StatusOr<std::optional<NodeState>> Read() {
    JsonToken token;
    TACHO_RETURN_IF_ERROR(reader_.Next(&token));
    if (token != JsonToken::kBeginObject) return NoNode("it is no JSON object");
    const absl::Status read = ReadObject(
        &reader_,
        [this](const std::string& member, JsonToken value) { return TakeMember(member, value); });
    if (absl::IsCancelled(read)) return std::nullopt;
    if (!read.ok()) return read;
    TACHO_RETURN_IF_ERROR(reader_.Next(&token));  // Nothing may follow.
    if (!is_node_ || state_.version.empty()) return NoNode("it has no kind Node or no version");
    if (its_name_ != name_) return NoNode(absl::StrCat("its name is '", its_name_, "'"));
    return state_;
  }

 private:
  absl::Status TakeMember(const std::string& member, JsonToken value) {
    if (member == "kind" && value == JsonToken::kString) is_node_ = reader_.text() == "Node";
    if (value != JsonToken::kBeginObject) return reader_.SkipValue(value);
    if (member == "metadata") return ReadMetadata();
    if (member == "spec") return ReadSpec();
    if (member == "status") return ReadStatus();
    return reader_.SkipValue(value);
  }

  absl::Status ReadMetadata() {
    return ReadObject(&reader_, [this](const std::string& member, JsonToken value) {
      if (member == "name" && value == JsonToken::kString) its_name_ = Printable(reader_.text());
      if (member == "resourceVersion" && value == JsonToken::kString) {
        state_.version = Printable(reader_.text());
        if (!known_.empty() && state_.version == known_) return absl::CancelledError();
      }
      return reader_.SkipValue(value);
    });
  }

  absl::Status ReadSpec() {
    return ReadObject(&reader_, [this](const std::string& member, JsonToken value) {
      if (member == "unschedulable") state_.cordoned = value == JsonToken::kTrue;
      if (member != "taints" || value != JsonToken::kBeginArray) return reader_.SkipValue(value);
      return ReadList(&reader_, [this](Texts taint) { AddTaint(std::move(taint), &state_); });
    });
  }

  absl::Status ReadStatus() {
    return ReadObject(&reader_, [this](const std::string& member, JsonToken value) {
      if (member != "conditions" || value != JsonToken::kBeginArray) {
        return reader_.SkipValue(value);
      }
      return ReadList(&reader_, [this](Texts one) { AddCondition(std::move(one), &state_); });
    });
  }

  importer::StringSource source_;
  JsonReader reader_{&source_};
  const absl::string_view name_;
  const absl::string_view known_;
  bool is_node_ = false;
  std::string its_name_;
  NodeState state_;
};

absl::string_view KeyOfTaint(absl::string_view taint) { return taint.substr(0, taint.rfind(':')); }

bool HasTaintWithKey(const NodeState& state, absl::string_view key) {
  return std::any_of(state.taints.begin(), state.taints.end(),
                     [key](const auto& taint) { return KeyOfTaint(taint.first) == key; });
}

NodeNotice NoticeOfTaint(const std::string& kind, absl::string_view says, const std::string& taint,
                         const std::string& value) {
  const absl::string_view key = KeyOfTaint(taint);
  const absl::string_view effect =
      absl::StripPrefix(absl::string_view(taint).substr(key.size()), ":");
  NodeNotice notice{
      .kind = kind,
      .message = absl::StrCat(says, ": ", key, value.empty() ? "" : "=", value, ":", effect),
      .fields = {{"taint", std::string(key)}}};
  if (!effect.empty()) notice.fields["effect"] = std::string(effect);
  if (!value.empty()) notice.fields["value"] = value;
  return notice;
}

void CompareEnds(const NodeState& before, const NodeState& now, std::vector<NodeNotice>* notices) {
  absl::string_view last;  // A key's effects are neighbours.
  for (const auto& [taint, value] : now.taints) {
    const absl::string_view key = KeyOfTaint(taint);
    if (!AnnouncesEnd(key) || key == last || HasTaintWithKey(before, key)) continue;
    last = key;
    NodeNotice notice = NoticeOfTaint("preempted", "Kubernetes takes this node away", taint, value);
    notice.fields["notice"] = std::string(key);
    notices->push_back(std::move(notice));
  }
}

void CompareTaints(bool first, const NodeState& before, const NodeState& now,
                   std::vector<NodeNotice>* notices) {
  for (const auto& [taint, value] : now.taints) {
    if (first || AnnouncesEnd(KeyOfTaint(taint)) || before.taints.contains(taint)) continue;
    notices->push_back(NoticeOfTaint("node_tainted", "this node has a new taint", taint, value));
  }
  for (const auto& [taint, value] : before.taints) {
    const bool is_left = AnnouncesEnd(KeyOfTaint(taint)) && HasTaintWithKey(now, KeyOfTaint(taint));
    if (is_left || now.taints.contains(taint)) continue;
    notices->push_back(NoticeOfTaint("node_untainted", "a taint of this node is gone", taint, ""));
  }
}

void CompareConditions(const NodeState& before, const NodeState& now,
                       std::vector<NodeNotice>* notices) {
  for (const auto& [type, says] : now.unhealthy) {
    if (before.unhealthy.contains(type)) continue;
    std::string message = absl::StrCat("the condition ", type, " of this node is ", says);
    message.resize(std::min(message.size(), kMaxNoticeBytes));  // ASCII, see Printable().
    notices->push_back(
        {.kind = "node_unhealthy", .message = std::move(message), .fields = {{"condition", type}}});
  }
  for (const auto& [type, unused] : before.unhealthy) {
    if (now.unhealthy.contains(type)) continue;
    notices->push_back(
        {.kind = "node_healthy",
         .message = absl::StrCat("the condition ", type, " of this node is well again"),
         .fields = {{"condition", type}}});
  }
}

}  // namespace

absl::StatusOr<std::optional<NodeState>> ParseNode(absl::string_view untrusted,
                                                   absl::string_view name,
                                                   absl::string_view known) {
  auto state = NodeReader(untrusted, name, known).Read();
  if (state.ok()) return state;
  return absl::Status(
      state.status().code(),
      absl::StrCat("the answer is no Node of the API server's: ", state.status().message()));
}

bool AnnouncesEnd(absl::string_view taint_key) {
  return std::find(kEnds.begin(), kEnds.end(), taint_key) != kEnds.end();
}

bool AnnouncesEnd(const NodeState& state) {
  return std::any_of(state.taints.begin(), state.taints.end(),
                     [](const auto& taint) { return AnnouncesEnd(KeyOfTaint(taint.first)); });
}

std::string Remember(const NodeState& state) {
  std::string text = kSeen;
  if (state.cordoned) absl::StrAppend(&text, "\n", kCordoned);
  for (const auto& [taint, unused] : state.taints) absl::StrAppend(&text, "\n", kTaint, taint);
  for (const auto& [type, unused] : state.unhealthy) {
    absl::StrAppend(&text, "\n", kUnhealthy, type);
  }
  return text;
}

NodeState Recall(absl::string_view remembered) {
  NodeState state;
  for (absl::string_view line : absl::StrSplit(remembered, '\n')) {
    if (line == kCordoned) state.cordoned = true;
    if (absl::ConsumePrefix(&line, kTaint)) {
      state.taints[std::string(line)];
    } else if (absl::ConsumePrefix(&line, kUnhealthy)) {
      state.unhealthy[std::string(line)];
    }
  }
  return state;
}

std::vector<NodeNotice> CompareNodes(const std::optional<NodeState>& before, const NodeState& now) {
  const NodeState past = before.value_or(NodeState());
  std::vector<NodeNotice> notices;
  CompareEnds(past, now, &notices);
  CompareTaints(!before.has_value(), past, now, &notices);
  if (now.cordoned && !past.cordoned) {
    notices.push_back({"node_cordoned", "this node is cordoned: no new pods come to it", {}});
  }
  if (!now.cordoned && past.cordoned) {
    notices.push_back({"node_uncordoned", "this node is open for pods again", {}});
  }
  CompareConditions(past, now, &notices);
  return notices;
}

}  // namespace tacho::agent
