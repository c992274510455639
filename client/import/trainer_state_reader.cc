// Reads what Hugging Face's Trainer leaves behind: trainer_state.json, which has the history of a
// run, and all_results.json, which has its last values.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/import/attempt_counter.h"
#include "client/import/formats.h"
#include "client/import/json_reader.h"
#include "client/import/readers.h"
#include "client/import/row_maker.h"
#include "client/import/values.h"
#include "proto/base/status_macros.h"

namespace tacho::importer {
namespace {

class TrainerState {
 public:
  TrainerState(const ReadOptions& options, JsonReader* json, RecordSink* sink)
      : options_(options),
        json_(json),
        attempts_(options, sink),
        rows_(options, &attempts_),
        clock_(options, sink) {}

  absl::Status Read() {
    JsonToken token;
    TACHO_RETURN_IF_ERROR(json_->Next(&token));
    if (token != JsonToken::kBeginObject) return NoTrainerState();
    while (true) {
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token != JsonToken::kKey) break;
      if (absl::Status status = ReadMember(json_->text()); !status.ok()) return status;
    }
    TACHO_RETURN_IF_ERROR(json_->Next(&token));
    return seen_history_ ? AddFacts() : AddResults();
  }

 private:
  static absl::Status NoTrainerState() {
    return absl::InvalidArgumentError(
        "there is no list \"log_history\", as in trainer_state.json, and no number like "
        "\"train_runtime\" or \"eval_loss\", as in all_results.json; let auto find the format, or "
        "name another one");
  }

  // A copy: the reader's text changes with its next token.
  absl::Status ReadMember(std::string name) {
    JsonToken token;
    TACHO_RETURN_IF_ERROR(json_->Next(&token));
    if (name == "log_history" && token == JsonToken::kBeginArray) return ReadHistory();
    const bool is_fact = token == JsonToken::kNumber || token == JsonToken::kString ||
                         token == JsonToken::kTrue || token == JsonToken::kFalse;
    if (!is_fact) return json_->SkipValue(token);
    if (facts_.size() == FlatObject::kMaxMembers) {
      return absl::InvalidArgumentError(absl::StrCat(LineText(json_->line()), ": more than ",
                                                     FlatObject::kMaxMembers, " members"));
    }
    const std::string value = token == JsonToken::kTrue    ? "true"
                              : token == JsonToken::kFalse ? "false"
                                                           : json_->text();
    facts_.push_back({std::move(name), token, value});
    return absl::OkStatus();
  }

  absl::Status AddFact(const JsonMember& fact) {
    return attempts_.AddAttributes(options_.attempt, fact.name, fact.text);
  }

  // They are those of the last attempt, which wrote the file.
  absl::Status AddFacts() {
    for (const JsonMember& fact : facts_) {
      TACHO_RETURN_IF_ERROR(AddFact(fact));
      // tachoctl takes the planned steps from this attribute.
      if (fact.name != "max_steps" || absl::StartsWith(fact.text, "-")) continue;
      TACHO_RETURN_IF_ERROR(AddFact({"planned_steps", fact.kind, fact.text}));
    }
    return absl::OkStatus();
  }

  // The results of a whole run, from when its training ended.
  absl::Status AddResults() {
    double runtime_s = 0;
    bool found = false;
    for (const JsonMember& fact : facts_) {
      found = found || (fact.kind == JsonToken::kNumber && IsResultName(fact.name));
      if (fact.kind != JsonToken::kNumber) TACHO_RETURN_IF_ERROR(AddFact(fact));
      if (fact.kind != JsonToken::kNumber || !options_.Wants(fact.name)) continue;
      TACHO_RETURN_IF_ERROR(rows_.Add(fact, fact.name));
      const std::optional<double> number = ParseNumber(fact.text);
      if (fact.name == "train_runtime" && number && *number >= 0) runtime_s = *number;
    }
    if (!found) return NoTrainerState();
    std::optional<int64_t> time;
    TACHO_RETURN_IF_ERROR(clock_.TimeSinceStart(absl::Seconds(runtime_s), &time));
    return rows_.Finish(time, std::nullopt, "the results");
  }

  absl::Status ReadHistory() {
    seen_history_ = true;
    JsonToken token;
    for (uint64_t entry = 1;; ++entry) {
      TACHO_RETURN_IF_ERROR(json_->Next(&token));
      if (token == JsonToken::kEndArray) return absl::OkStatus();
      const std::string where = LineText(json_->line());
      if (token != JsonToken::kBeginObject) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, ": entry ", entry, " of log_history is no object"));
      }
      TACHO_RETURN_IF_ERROR(entry_.Read(json_));
      if (absl::Status status = AddEntry(where); !status.ok()) return status;
    }
  }

  absl::Status AddEntry(const std::string& where) {
    const JsonMember* step_member = entry_.Find("step");
    const auto step = step_member == nullptr ? std::nullopt : ParseInteger(step_member->text);
    if (!step) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": an entry of log_history has no \"step\""));
    }
    for (const JsonMember& member : entry_.members()) {
      if (member.name == "step" || !options_.Wants(member.name)) continue;
      if (absl::Status status = rows_.Add(member, where); !status.ok()) return status;
    }
    std::optional<int64_t> time;
    TACHO_RETURN_IF_ERROR(clock_.TimeOfStep(*step, &time));
    return rows_.Finish(time, step, where);
  }

  const ReadOptions& options_;
  JsonReader* const json_;
  AttemptCounter attempts_;
  std::vector<JsonMember> facts_;  // Members that are no lists or objects.
  RowMaker rows_;
  StepClock clock_;
  FlatObject entry_;
  bool seen_history_ = false;
};

}  // namespace

absl::Status ReadTrainerState(OpenSource open, const ReadOptions& options, RecordSink* sink) {
  TACHO_ASSIGN_OR_RETURN(auto source, open());
  JsonReader json(source.get());
  return TrainerState(options, &json, sink).Read();
}

}  // namespace tacho::importer
