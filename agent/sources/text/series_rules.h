// Decides what becomes of a sample of a text: under which job and task it is filed, and with which
// name and labels, or why it is left out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/exposition/exposition.h"
#include "re2/re2.h"
#include "tacho/config/v1/text_sources.pb.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

// Patterns over whole names: what is allowed and not denied.
class NamePatterns {
 public:
  //   INVALID_ARGUMENT  one is no RE2.
  static absl::StatusOr<NamePatterns> Create(
      const google::protobuf::RepeatedPtrField<std::string>& allow,
      const google::protobuf::RepeatedPtrField<std::string>& deny);
  bool Wants(absl::string_view name) const;

 private:
  std::vector<std::unique_ptr<RE2>> allow_;
  std::vector<std::unique_ptr<RE2>> deny_;
};

struct FiledSeries {
  v1::Source source;
  v1::Layout::Series series;
};

// Thread-safe once made.
class SeriesRuler {
 public:
  enum class LeftOut { kNo, kNotWanted, kNoJob, kBadTask, kBadName, kBadText };

  // Every series gets `extra` labels, unless it has or the rules say others of that name.
  //   INVALID_ARGUMENT  a pattern or a template is wrong; the text names the key.
  static absl::StatusOr<SeriesRuler> Create(const config::v1::SeriesRules& rules, std::string host,
                                            std::vector<std::pair<std::string, std::string>> extra);

  LeftOut File(const ExpositionFamily& family, const ExpositionSample& sample,
               FiledSeries* filed) const;

 private:
  // Text and names of labels, in turns.
  struct Piece {
    std::string text;
    bool is_label = false;
  };
  using Template = std::vector<Piece>;

  static absl::StatusOr<Template> ParseTemplate(absl::string_view key, absl::string_view text);
  static std::optional<std::string> Fill(const Template& pieces, const ExpositionSample& sample);
  bool IsUsed(absl::string_view label) const;  // In a template, or dropped.
  LeftOut AddLabels(const ExpositionSample& sample, v1::Layout::Series* series) const;

  config::v1::SeriesRules rules_;
  std::string host_;
  std::vector<std::pair<std::string, std::string>> extra_;
  NamePatterns names_;
  Template job_;
  Template task_;
};

// For the agent's metrics: "not_wanted", "no_job", …
absl::string_view LeftOutName(SeriesRuler::LeftOut why);

}  // namespace tacho::agent
