// The templates of `interop.mapping`: texts with the values of labels in them.
//
//   template = { literal | "{" label { "," label } [ ":" fallback ] "}" }
//   label    = name [ "|host" ]
//
// The first of the labels that the series has gives the value; "|host" leaves a port out of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/model/series.h"

namespace tacho::server::interop {

// Immutable, so thread-safe.
class LabelTemplate {
 public:
  // A template that is always empty.
  LabelTemplate() = default;
  //   INVALID_ARGUMENT  the text says what is wrong, without naming the key.
  static absl::StatusOr<LabelTemplate> Parse(absl::string_view text);

  // The text for `labels`; nullopt if a brace has neither a label nor a fallback. Adds to `used`
  // the names of the labels whose whole value is in the text.
  std::optional<std::string> Expand(const storage::Labels& labels,
                                    std::vector<absl::string_view>* used) const;

 private:
  struct Choice {
    std::string label;
    bool host_only = false;
  };
  struct Part {
    std::string literal;
    std::vector<Choice> choices;  // Empty: the part is its literal.
    std::optional<std::string> fallback;
  };
  static absl::StatusOr<Part> ParseBraces(absl::string_view inside);

  std::vector<Part> parts_;
};

// The value of a label; null if it is not there.
const std::string* FindLabel(const storage::Labels& labels, absl::string_view name);

}  // namespace tacho::server::interop
