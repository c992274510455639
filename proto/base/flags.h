// Describes and reads the flags of a command line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tacho {

// The empty initializers let a designated initializer leave members out without a warning.
struct FlagSpec {
  std::string name;              // Without its dashes.
  char letter = 0;               // The short form, if there is one.
  std::string placeholder = {};  // What the value is called; empty: a switch, no value.
  std::string help = {};
  std::vector<std::string> choices = {};  // If not empty, the only values allowed.
  bool repeated = false;                  // May be given more than once.
};

class ParsedArgs {
 public:
  bool Has(absl::string_view flag) const { return values_.count(std::string(flag)) > 0; }
  // The value, if the flag was given.
  std::optional<std::string> Get(absl::string_view flag) const;
  std::vector<std::string> GetAll(absl::string_view flag) const;

  const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  friend class ArgsReader;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positionals_;
};

// --name VALUE, --name=VALUE, -n VALUE, -nVALUE; flags and positionals in any order; all after "--"
// is positional. A flag's value may begin with a dash.
//   INVALID_ARGUMENT  the text names the flag, the nearest known one and what was expected.
absl::StatusOr<ParsedArgs> ParseArgs(const std::vector<std::string>& args,
                                     const std::vector<FlagSpec>& flags);

}  // namespace tacho
