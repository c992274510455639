#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
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
      : options_(options), json_(json), sink_(sink), rows_(options, sink), clock_(options, sink) {}

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
    return seen_history_ ? absl::OkStatus() : NoTrainerState();
  }

 private:
  static absl::Status NoTrainerState() {
    return absl::InvalidArgumentError(
        "there is no list \"log_history\": this is no trainer_state.json");
  }

  // A copy: the reader's text changes with its next token.
  absl::Status ReadMember(std::string name) {
    JsonToken token;
    TACHO_RETURN_IF_ERROR(json_->Next(&token));
    if (name == "log_history" && token == JsonToken::kBeginArray) return ReadHistory();
    const bool is_fact = token == JsonToken::kNumber || token == JsonToken::kString ||
                         token == JsonToken::kTrue || token == JsonToken::kFalse;
    if (!is_fact) return json_->SkipValue(token);
    const std::string value = token == JsonToken::kTrue    ? "true"
                              : token == JsonToken::kFalse ? "false"
                                                           : json_->text();
    absl::Status status = sink_->AddAttributes(options_.attempt, name, value);
    // tachoctl takes the planned steps from this attribute.
    if (status.ok() && name == "max_steps" && value[0] != '-') {
      status = sink_->AddAttributes(options_.attempt, "planned_steps", value);
    }
    return status;
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
  RecordSink* const sink_;
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
